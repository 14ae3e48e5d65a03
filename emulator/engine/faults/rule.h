// A rule of a scenario as values: where it looks, which of what happens there it picks, when it
// acts, and what it does then. docs/scenarios.md is the same in words; scenario/ reads it from
// YAML.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/abi/ucma.h"
#include "emulator/abi/verbs_values.h"
#include "emulator/engine/base/time.h"
#include "wire/ip_address.h"

namespace rocemu::engine::faults {

/// Where a rule looks.
enum class Where : uint8_t {
  kFrame,        // a frame on its way, as it leaves its device or comes from outside
  kLink,         // the same, but for rules that say what a link is like
  kCm,           // a message of the connection manager on its way
  kWorkRequest,  // a send work request whose turn it is
  kRequest,      // a request packet at its responder, with the expected PSN
  kCompletion,   // a completion on its way into its CQ
  kEvent,        // an async event on its way to its program
  kCmEvent,      // an event of an rdma_cm id on its way to its channel
  kVerb,         // a call of libibverbs or librdmacm
  kNow,          // acts once, at the moment it is given
};
inline constexpr size_t kPlaces = 10;

/// `process: server` or `process: server#2`.
struct ProcessSelection {
  std::string program;
  std::optional<uint32_t> number;
};

struct Range {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;
  friend bool operator==(const Range&, const Range&) = default;
};
/// Any of these; none means any number at all.
using Ranges = std::vector<Range>;

/// A set of the numbers by which a place tells what happens there: BTH opcodes of frames and
/// requests, attribute IDs of CM messages (their low byte), ibv_wr_opcode of work requests,
/// ibv_wc_opcode of completions, types of events, and calls as verb_kind() numbers them.
using Kinds = std::bitset<256>;

/// What an acknowledgement says; kNone of all other packets.
enum class Answer : uint8_t { kNone, kAck, kRnrNak, kNak };

enum class Queue : uint8_t { kSend, kReceive };

/// What has to agree. What is not said agrees with everything.
struct Selection {
  std::optional<std::string> device;        // where it happens; of frames the sender, or "outside"
  std::optional<std::string> to;            // of frames the receiver, or "outside"
  bool either_way = false;                  // or `to` and `device` the other way round
  bool mads = false;                        // of kFrame: also what goes to QP 1
  std::vector<ProcessSelection> processes;  // any of these; none means any
  std::optional<Kinds> kinds;
  std::optional<std::bitset<4>> answers;    // by Answer
  std::optional<std::bitset<32>> statuses;  // by WcStatus
  std::optional<Queue> queue;
  Ranges qp;       // 1: the device's first QP
  Ranges qp_num;   // as ibv_qp.qp_num
  Ranges dest_qp;  // of frames, the destination's number
  Ranges psn;      // 0: the connection's first, in the direction of the request
  Ranges psn_num;  // as the packet has it
  Ranges message;  // 1: the QP's first work request, or the first one it answers
  Ranges size;     // bytes: of a frame's payload, of a work request's or completion's message
  Ranges wr_id;
};

/// Which of the occurrences that agree it acts on. They are counted for each flow by itself, and
/// chance is drawn from a stream of the flow's own, so that no flow changes what another meets.
struct Trigger {
  Ranges nth;                        // the flow's first is 1
  Ranges nth_total;                  // the first of all flows is 1
  uint64_t every = 1;                // each so many
  uint64_t burst = 1;                // and the occurrences that follow, so many in all
  uint64_t count = UINT64_MAX;       // at most so often in each flow
  uint64_t total = UINT64_MAX;       // at most so often in all
  double probability = 1;            // of those that are left
  std::optional<Duration> lifetime;  // from when it first acts
  Duration after{};                  // the NIC's time before which nothing agrees
};

/// A change of a header's field. Of what the packet does not have, nothing is changed.
struct FieldChange {
  enum class Field : uint8_t {
    kOpcode,
    kSolicited,
    kMigReq,
    kTver,
    kPkey,
    kFecn,
    kBecn,
    kDestQp,
    kAckReq,
    kPsn,
    kVa,
    kRkey,
    kDmaLength,
    kSyndrome,
    kMsn,
    kQkey,
    kSrcQp,
    kImmediate,
    kInvalidateRkey,
    kSwapAdd,
    kCompare,
    kOriginal,
    kSrq,
    kTrafficClass,
    kHopLimit,
    kUdpSourcePort,
  };
  Field field;
  bool relative = false;  // `value` is added, modulo the field's size
  uint64_t value = 0;
};

struct Corruption {
  bool icrc = false;
  std::vector<uint32_t> bits;  // 0 is the first of the BTH
  uint32_t random_bits = 0;    // so many more, anywhere from the BTH on
};

/// A frame that nobody sent: the one it comes with, changed, to its receiver or back to its sender.
struct MadeUpFrame {
  bool to_sender = false;
  std::vector<FieldChange> changes;
  uint32_t payload = 0;  // zero bytes
};

struct Rejection {
  uint16_t reason = 0;
  std::vector<uint8_t> private_data;
};

struct PortChange {
  bool up;
  std::optional<Duration> lifetime;  // then it is up again
};

struct GidChange {
  uint32_t index;
  wire::IpAddress address;
};

struct Effects {
  // frame, cm
  bool drop = false;
  Duration delay{};
  Duration jitter{};       // of frames and completions: up to so much more, by chance
  uint32_t duplicate = 0;  // further copies
  uint32_t reorder = 0;    // frames of its flow that overtake it
  std::optional<Corruption> corrupt;
  std::vector<FieldChange> rewrite;
  std::vector<MadeUpFrame> inject;
  std::optional<Rejection> reject;  // cm
  // link
  Duration latency{};
  uint64_t bits_per_second = 0;  // 0: no limit
  double loss = 0;               // probability
  // request
  bool rnr = false;               // as if there were no receive work request
  std::optional<uint8_t> answer;  // this AETH syndrome instead of what the request asks for
  bool silent = false;
  // work_request, completion
  std::optional<abi::WcStatus> status;
  uint32_t vendor_error = 0;
  // completion
  uint32_t hold = 0;  // until so many are there
  bool overrun = false;
  // event, cm_event
  std::optional<abi::EventType> event;
  std::optional<abi::ucma::EventType> cm_event;
  std::optional<int32_t> cm_status;
  // verb
  int error = 0;  // errno

  bool log = false;  // nothing happens, but that the rule acted is told
  // anywhere, beside the above: what else happens to the QP or device at hand
  std::optional<abi::EventType> raise;
  std::optional<abi::ucma::EventType> raise_cm;
  std::optional<PortChange> port;
  std::optional<GidChange> gid;
  bool remove_device = false;
  bool kill = false;   // the process at hand
  bool pause = false;  // the NIC, until it is resumed or stepped
};

struct Rule {
  std::string name;
  Where where{};
  Selection which;
  Trigger when;
  Effects effects;
};

/// What a scenario file or an injected rule says, with its text: a journal keeps the text.
struct RuleSet {
  std::string text;
  std::vector<Rule> rules;
};

/// What has become of a rule.
struct RuleReport {
  std::string name;
  Where where{};
  uint64_t matched = 0;  // that agreed with the selection
  uint64_t fired = 0;
};

/// IBTA vol 1, 11.6.3.2: affiliated asynchronous errors, with which a QP goes to the error state.
constexpr bool fails_qp(abi::EventType type) {
  return type == abi::EventType::kQpFatal || type == abi::EventType::kQpReqErr ||
         type == abi::EventType::kQpAccessErr;
}

/// The kind of a call: abi::Op has the numbers below 100. What the numbers of abi::Op leave room
/// for above them is librdmacm's. What the kernel has two commands for is one kind; what has no
/// number of its own has one of these.
inline constexpr uint8_t kCmVerbs = 128;
enum class OtherVerb : uint8_t {
  kImportDevice = 100,
  kAllocNullMr,
  kRegDmMr,
  kRdmaEstablish = 200,  // an accept without parameters
};
constexpr uint8_t verb_kind(abi::ucma::Command command) {
  using abi::ucma::Command;
  if (command == Command::kBindIp) command = Command::kBind;
  if (command == Command::kResolveIp) command = Command::kResolveAddr;
  if (command == Command::kQueryRoute) command = Command::kQuery;
  if (command == Command::kJoinIpMcast) command = Command::kJoinMcast;
  return static_cast<uint8_t>(kCmVerbs + static_cast<uint32_t>(command));
}

}  // namespace rocemu::engine::faults
