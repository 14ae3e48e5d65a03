// Everything that can happen to the engine, and everything it can want done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/abi/ucma.h"
#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/frame_marks.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/process_names.h"
#include "emulator/engine/base/time.h"
#include "wire/ip_address.h"

namespace rocemu::engine {

namespace faults {
struct Rule;
struct RuleSet;
}  // namespace faults

// ---- Inputs ---------------------------------------------------------------------------------

/// A client opened a device. Its id was never used before.
struct AttachClient {
  ClientId client;
  DeviceIndex device;
  /// Shares the objects of that client (ibv_import_device(3)): both may use what either made. An
  /// object's memory is always that of the client that made it.
  std::optional<ClientId> shares_with = std::nullopt;
};

/// A client is gone, orderly or not: all its objects go, without completions or events for it.
struct DetachClient {
  ClientId client;
};

/// A control request, already checked for size, magic and version. Answered in Outputs::reply.
/// kHello is the daemon's own business and never comes here; of kCreateChannel only what fails it.
struct Command {
  ClientId client;
  const abi::Request& request;
};

/// One or more WQEs as copied out of the client's send ring: SendWqe and what follows it, each one
/// stride long. A journal has them one by one.
struct PostSend {
  ClientId client;
  QpNumber qp;
  std::span<const std::byte> wqes;
};

/// The same of a receive queue: RecvWqe and what follows it.
struct PostRecv {
  ClientId client;
  QpNumber qp;
  std::span<const std::byte> wqes;
};

struct PostSrqRecv {
  ClientId client;
  SrqId srq;
  std::span<const std::byte> wqes;
};

/// ibv_req_notify_cq(3), by a client that had seen `producer` completions.
struct ArmCq {
  ClientId client;
  CqId cq;
  uint32_t producer;
  bool solicited_only;
};

/// An Ethernet frame from outside the fabric.
struct ReceivedFrame {
  DeviceIndex device;
  std::span<const uint8_t> bytes;
  /// False if the frame's IPv4 identification is a guess, since a UDP socket does not show it: then
  /// the ICRC may be right with any (wire/identification.h).
  bool identification_known = true;
};

/// Frames that came in one burst, in their order: requests of a QP among them get one ACK.
struct ReceivedFrames {
  std::span<const ReceivedFrame> frames;
};

/// The port's cable: a port that is down neither sends nor receives a frame.
struct SetPort {
  DeviceIndex device;
  bool up;
};

/// The device is pulled out, for good: what its clients had of it is gone.
struct RemoveDevice {
  DeviceIndex device;
};

/// Faults to be had from now on, behind those that there are. Rules for "now" act at once.
struct AddRules {
  std::shared_ptr<const faults::RuleSet> rules;
};

/// The rule of that name goes, or all do.
struct RemoveRules {
  std::optional<std::string> name;
};

/// Time stands still, and frames move only by ReleaseFrames; or all goes on again.
struct Pause {
  bool paused;
};

/// While paused: so many frames arrive. If none is under way, time moves on to where the next
/// one is.
struct ReleaseFrames {
  uint32_t count;
};

/// A program opened an rdma_cm event channel. Its id was never used before.
struct OpenCmChannel {
  CmChannelId channel;
};

/// Says which process a client or an event channel is of, once it has come.
struct NameProcess {
  Owner of;
  std::string program;
  uint32_t number;  // 1 is the run's first process of that program
};

/// The channel is closed: all its rdma_cm ids go, and their peers hear of it.
struct CloseCmChannel {
  CmChannelId channel;
};

/// A command of librdmacm: the bytes of a struct of abi/ucma.h and what follows it, of any content.
/// Answered in Outputs::cm_reply. The field `fd` of MigrateId is the number of the old channel, and
/// `events_reported` in an answer is 0: what was read only the daemon knows.
struct CmCommand {
  CmChannelId channel;
  abi::ucma::Command command;
  std::span<const std::byte> in;
  uint32_t out_size;  // the program's room for the response
};

/// Memory of some client that was MemoryResult::kNotYet may be there now.
struct MemoryReady {};

/// Nothing but the passing of time; also continues work that a step left undone. Only here timers
/// of the protocol expire: whatever else has come by now is to be given to the engine before, since
/// it may hold the answer that a timer waits for.
struct Tick {};

using Input =
    std::variant<AttachClient, DetachClient, Command, PostSend, PostRecv, PostSrqRecv, ArmCq,
                 ReceivedFrames, SetPort, RemoveDevice, AddRules, RemoveRules, Pause, ReleaseFrames,
                 OpenCmChannel, NameProcess, CloseCmChannel, CmCommand, MemoryReady, Tick>;

// ---- Outputs --------------------------------------------------------------------------------

struct Completion {
  ClientId client;
  CqId cq;
  abi::Cqe cqe;
};

/// The CQ overran: ibv_poll_cq must fail from now on. IBV_EVENT_CQ_ERR comes as an AsyncEvent.
struct CqFailed {
  ClientId client;
  CqId cq;
};

/// A completion event for the channel that the CQ was created with.
struct CompletionEvent {
  ClientId client;
  CqId cq;
  ChannelId channel;
  uint64_t user_handle;
};

struct AsyncEvent {
  ClientId client;
  abi::EventType type;
  uint64_t element;  // user handle of the CQ, QP or SRQ, or the port number
};

/// The client's device was removed: its completion channels fail from now on.
struct DeviceLost {
  ClientId client;
};

/// The client broke the contract of abi/ (an index, length or handle that cannot be): end it.
struct ClientViolation {
  ClientId client;
  const char* reason;  // a string literal
};

/// A frame for an address that no device of the fabric has.
struct TransmitFrame {
  DeviceIndex device;
  Frame frame;
};

/// The first QP of a device with DeviceConfig::outside was attached to the multicast group, or
/// the last one detached.
struct GroupChange {
  DeviceIndex device;
  wire::IpAddress group;
  bool member;
};

/// A frame that a device sent or got from outside, if FabricConfig::trace_frames.
struct FrameTrace {
  Instant at;
  Frame frame;
  FrameMarks marks;
};

/// A rule acted. `subject` and `process` describe its object in words, for people; the other fields
/// identify the object, as far as each applies.
struct RuleFired {
  Instant at;
  std::shared_ptr<const faults::Rule> rule;
  std::string subject;
  std::string process = {};  // such as server#1
  std::optional<DeviceIndex> device = {};
  std::optional<QpNumber> qp = {};
  std::optional<Owner> owner = {};
  std::optional<uint32_t> psn = {};  // of a request at its responder, which is `qp`
  FrameFault frame = {};
};

/// Port or GID table of a device changed by itself, or a rule pulled it out: what the file system
/// says of it has to change.
struct DeviceChanged {
  DeviceIndex device;
};

/// An event for an rdma_cm event channel. `reserved` is the id that the event is counted for: of a
/// connect request the listener, of a multicast event the id that joined.
struct CmEvent {
  CmChannelId channel;
  std::shared_ptr<const abi::ucma::EventResponse> event;
};

/// A rule ends the process that the client or event channel is of, at once.
struct KillProcess {
  Owner of;
};

using Output = std::variant<Completion, CqFailed, CompletionEvent, AsyncEvent, DeviceLost,
                            ClientViolation, TransmitFrame, GroupChange, FrameTrace, RuleFired,
                            DeviceChanged, CmEvent, KillProcess>;

// ---- What programs do wrong -------------------------------------------------------------------
// The sanitizer reports it (emulator/sanitizer/nic.h). It changes nothing, and no recording has it.

/// A message met no posted receive. It is repeated (RC) or lost.
struct ReceiveMissing {
  ClientId client;  // the receiver
  DeviceIndex device;
  QpNumber qp;
  std::optional<SrqId> srq;
  QpNumber from;
  bool is_repeated;
};

/// A datagram was lost since its receive has room for the payload, and not for the GRH before it.
struct GrhMissing {
  ClientId client;
  DeviceIndex device;
  QpNumber qp;
  QpNumber from;
  uint64_t payload;
};

/// Why a key does not open the bytes that an access names.
enum class AccessObstacle : uint8_t {
  kUnknownKey,
  kDeregistered,  // not long ago
  kOtherPd,
  kOtherQp,  // a window of type 2
  kNoAccess,
  kBeyond,
};

/// A peer's access to memory was refused.
struct AccessRefused {
  ClientId client;  // whose memory it would be
  DeviceIndex device;
  QpNumber qp;
  QpNumber from;
  uint32_t rkey;
  uint64_t address, length;
  uint32_t access;  // AccessFlags
  AccessObstacle obstacle;
  uint64_t opened_address, opened_length;  // what the key opens, if it opens something
  bool is_window;                          // that is a memory window
};

/// A WRITE was posted to bytes that another QP's WRITE, posted before, has yet to change.
struct WritesUnordered {
  ClientId client;  // that posted the second
  DeviceIndex device;
  QpNumber qp;
  QpNumber other;
  uint32_t rkey;
  uint64_t address, length;  // of the bytes of both
};

using Misuse = std::variant<ReceiveMissing, GrhMissing, AccessRefused, WritesUnordered>;

struct CmReply {
  int error = 0;  // 0, or a positive errno value; then there is no response
  std::vector<std::byte> response;
};

/// What the adversary of `--adversarial` did (adversarial/choices.h). It is for people, and no
/// recording has it.
struct AdversarialChoice {
  uint8_t of;  // adversarial::Class
  uint64_t number;
  std::string text;
};

/// A frame as it began to leave a port of the simulated network that is captured. No recording has
/// it.
struct PortCapture {
  uint32_t capture;  // its place among the captured ports
  Instant at;
  Frame frame;
};

/// What one step wants done, in this order. Reused from step to step, so that it stops allocating.
struct Outputs {
  std::vector<Output> list;
  std::optional<abi::Reply> reply;  // to the step's Command, and only then
  std::optional<CmReply> cm_reply;  // to the step's CmCommand, and only then
  std::vector<Misuse> misuses;
  std::vector<AdversarialChoice> choices;
  std::vector<PortCapture> port_captures;

  void clear() {
    list.clear();
    misuses.clear();
    choices.clear();
    port_captures.clear();
    reply.reset();
    cm_reply.reset();
  }
};

}  // namespace rocemu::engine
