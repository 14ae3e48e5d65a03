// All inputs and outputs of the engine
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

/// A client opened a device. The client's id was never used before.
struct AttachClient {
  ClientId client;
  DeviceIndex device;
  /// The client with which the new client shares its objects (ibv_import_device(3)): each of them
  /// can use the objects of the other. An object's memory always belongs to the client that created
  /// the object.
  std::optional<ClientId> shares_with = std::nullopt;
};

/// A client has ended, in an orderly way or not. All its objects are destroyed, and it gets no
/// completions or events for them.
struct DetachClient {
  ClientId client;
};

/// A control request, whose size, magic and version have been checked. The reply is in
/// Outputs::reply. The daemon carries out kHello and kCreateChannel itself; the engine only applies
/// rules to them.
struct Command {
  ClientId client;
  const abi::Request& request;
};

/// One or more WQEs as copied from the client's send ring. Each is a SendWqe and its data, one
/// stride long. A journal records each WQE separately.
struct PostSend {
  ClientId client;
  QpNumber qp;
  std::span<const std::byte> wqes;
};

/// One or more WQEs of a receive queue. Each is a RecvWqe and its data.
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

/// A call of ibv_req_notify_cq(3) by a client that had seen `producer` completions.
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
  /// False if the frame's IPv4 identification is not known, because a UDP socket does not report
  /// it. The ICRC may then be correct for any identification (wire/identification.h).
  bool identification_known = true;
};

/// Frames that arrived in one burst, in order. One ACK can cover the requests of a QP in a burst.
struct ReceivedFrames {
  std::span<const ReceivedFrame> frames;
};

/// The port's cable is plugged in or pulled out. A port that is down neither sends nor receives
/// frames.
struct SetPort {
  DeviceIndex device;
  bool up;
};

/// The device is removed permanently, together with all objects of its clients.
struct RemoveDevice {
  DeviceIndex device;
};

/// Adds rules, after the present ones. Rules for "now" act at once.
struct AddRules {
  std::shared_ptr<const faults::RuleSet> rules;
};

/// Removes the rule of that name, or all rules.
struct RemoveRules {
  std::optional<std::string> name;
};

/// Pauses or resumes the clock. While the clock is paused, frames arrive only by ReleaseFrames.
struct Pause {
  bool paused;
};

/// Lets `count` frames arrive while the clock is paused. If no frame can arrive next, the clock
/// first advances to the next deadline.
struct ReleaseFrames {
  uint32_t count;
};

/// A program opened an rdma_cm event channel. The channel's id was never used before.
struct OpenCmChannel {
  CmChannelId channel;
};

/// Names the process to which a new client or event channel belongs.
struct NameProcess {
  Owner of;
  std::string program;
  uint32_t number;  // 1 is the run's first process of that program
};

/// The channel was closed: all its rdma_cm ids are destroyed, and their peers are notified.
struct CloseCmChannel {
  CmChannelId channel;
};

/// A command of librdmacm: the bytes of a struct of abi/ucma.h and its data. The bytes can have any
/// contents. The reply is in Outputs::cm_reply. In a MigrateId, the field `fd` is the number of the
/// old channel. In a reply, `events_reported` is 0, since only the daemon knows which events were
/// read.
struct CmCommand {
  CmChannelId channel;
  abi::ucma::Command command;
  std::span<const std::byte> in;
  uint32_t out_size;  // the size of the program's buffer for the response
};

/// The program may have provided memory for which an earlier access returned MemoryResult::kNotYet.
struct MemoryReady {};

/// Time has passed. A Tick also continues work that a step left undone. Timers of the protocol
/// expire only in a Tick. Before a Tick, the engine must get all other inputs that have arrived,
/// since one of them may contain the answer for which a timer waits.
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

/// The CQ overran, so ibv_poll_cq must fail from now on. The engine emits IBV_EVENT_CQ_ERR
/// separately, as an AsyncEvent.
struct CqFailed {
  ClientId client;
  CqId cq;
};

/// A completion event for the channel with which the CQ was created.
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

/// The client's device was removed, so its completion channels fail from now on.
struct DeviceLost {
  ClientId client;
};

/// The client violated the contract of abi/ (with an impossible index, length or handle), so the
/// daemon must disconnect it.
struct ClientViolation {
  ClientId client;
  const char* reason;  // a string literal
};

/// A frame for an address that no device of the fabric has
struct TransmitFrame {
  DeviceIndex device;
  Frame frame;
};

/// The first QP of a device with DeviceConfig::outside was attached to the multicast group, or the
/// device's last QP in the group was detached.
struct GroupChange {
  DeviceIndex device;
  wire::IpAddress group;
  bool member;
};

/// A frame that a device sent, or that arrived from outside. Emitted if FabricConfig::trace_frames
/// is set.
struct FrameTrace {
  Instant at;
  Frame frame;
  FrameMarks marks;
};

/// A rule acted on an object. `subject` and `process` describe the object in words. The fields
/// after them identify the object; those that do not apply are empty.
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

/// The port or the GID table of a device changed, or a rule removed the device. The device's files
/// in sysfs must change.
struct DeviceChanged {
  DeviceIndex device;
};

/// An event for an rdma_cm event channel. `reserved` is the id among whose events it is counted:
/// for a connect request the listener, for a multicast event the id that joined.
struct CmEvent {
  CmChannelId channel;
  std::shared_ptr<const abi::ucma::EventResponse> event;
};

/// A rule requires that the process of the client or event channel is killed at once.
struct KillProcess {
  Owner of;
};

using Output = std::variant<Completion, CqFailed, CompletionEvent, AsyncEvent, DeviceLost,
                            ClientViolation, TransmitFrame, GroupChange, FrameTrace, RuleFired,
                            DeviceChanged, CmEvent, KillProcess>;

// ---- Mistakes of programs -----------------------------------------------------------------------
//
// The sanitizer reports these mistakes (emulator/sanitizer/nic.h). They have no effect on the
// engine, and are not recorded.

/// A message found no posted receive. It is retransmitted (RC) or lost.
struct ReceiveMissing {
  ClientId client;  // the receiver
  DeviceIndex device;
  QpNumber qp;
  std::optional<SrqId> srq;
  QpNumber from;
  bool is_repeated;
};

/// A datagram was lost, because its receive has space for the payload but not for the GRH in front
/// of it.
struct GrhMissing {
  ClientId client;
  DeviceIndex device;
  QpNumber qp;
  QpNumber from;
  uint64_t payload;
};

/// The reason why a key does not permit an access
enum class AccessObstacle : uint8_t {
  kUnknownKey,
  kDeregistered,  // recently
  kOtherPd,
  kOtherQp,  // a window of type 2
  kNoAccess,
  kBeyond,
};

/// A peer's access to memory was refused.
struct AccessRefused {
  ClientId client;  // the owner of the memory
  DeviceIndex device;
  QpNumber qp;
  QpNumber from;
  uint32_t rkey;
  uint64_t address, length;
  uint32_t access;  // AccessFlags
  AccessObstacle obstacle;
  uint64_t opened_address, opened_length;  // the range of the key, if it has one
  bool is_window;                          // whether the key is that of a memory window
};

/// A WRITE was posted to bytes that an earlier WRITE of another QP has yet to change.
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
  int error = 0;  // 0, or a positive errno value, without a response
  std::vector<std::byte> response;
};

/// An action of the adversary of `--adversarial` (adversarial/choices.h). It is shown to the user,
/// and is not recorded.
struct AdversarialChoice {
  uint8_t of;  // adversarial::Class
  uint64_t number;
  std::string text;
};

/// A frame as it began to leave a captured port of the simulated network. It is not recorded.
struct PortCapture {
  uint32_t capture;  // its position among the captured ports
  Instant at;
  Frame frame;
};

/// The actions that one step requests, in the order in which the caller must carry them out. The
/// object is reused from step to step, so that it soon needs no more allocations.
struct Outputs {
  std::vector<Output> list;
  std::optional<abi::Reply> reply;  // the reply to the step's Command; otherwise empty
  std::optional<CmReply> cm_reply;  // the reply to the step's CmCommand; otherwise empty
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
