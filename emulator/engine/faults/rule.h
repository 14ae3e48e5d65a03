// A rule of a scenario as values: its place, the occurrences that it selects, when it acts on them,
// and its effects. docs/scenarios.md describes rules in words; scenario/ reads them from YAML.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/abi/ucma.h"
#include "emulator/abi/verbs_values.h"
#include "emulator/engine/base/network_fault.h"
#include "emulator/engine/base/time.h"
#include "wire/ip_address.h"

namespace rocemu::engine::faults {

/// The place at which a rule acts, that is, the kind of occurrences to which it applies
enum class Where : uint8_t {
  kFrame,        // a frame, when it leaves its device or arrives from outside
  kLink,         // the same, but for rules that describe the properties of a link
  kCm,           // a message of the connection manager in transit
  kWorkRequest,  // a send work request that is being processed
  kRequest,      // a request packet at its responder, with the expected PSN
  kCompletion,   // a completion before it enters its CQ
  kEvent,        // an async event before it reaches its program
  kCmEvent,      // an event of an rdma_cm id before it reaches its channel
  kVerb,         // a call of libibverbs or librdmacm
  kNow,          // acts once, when it is added
  kNetwork,      // a part of the simulated network, at a time
};
inline constexpr size_t kPlaces = 11;

/// The value of `process: server` or `process: server#2` in a rule
struct ProcessSelection {
  std::string program;
  std::optional<uint32_t> number;
};

struct Range {
  uint64_t first = 0;
  uint64_t last = UINT64_MAX;
  friend bool operator==(const Range&, const Range&) = default;
};
/// A set of numbers: those in any of the ranges, or all numbers if there is no range.
using Ranges = std::vector<Range>;

/// A set of the numbers that distinguish occurrences at one place. For frames and requests, these
/// are BTH opcodes; for CM messages, the low byte of the attribute ID; for work requests,
/// ibv_wr_opcode; for completions, ibv_wc_opcode; for events, their types; and for calls, the
/// numbers of verb_kind().
using Kinds = std::bitset<256>;

/// The kind of an acknowledgement; all other packets have kNone.
enum class Answer : uint8_t { kNone, kAck, kRnrNak, kNak };

enum class Queue : uint8_t { kSend, kReceive };

/// The properties that an occurrence must have. A property that is not set matches everything.
struct Selection {
  std::optional<std::string> device;        // where it happens; of frames the sender, or "outside"
  std::optional<std::string> to;            // of frames the receiver, or "outside"
  bool either_way = false;                  // or with `to` and `device` swapped
  bool mads = false;                        // for kFrame: also frames to QP 1
  std::vector<ProcessSelection> processes;  // any of these; none means any
  std::optional<Kinds> kinds;
  std::optional<std::bitset<4>> answers;    // by Answer
  std::optional<std::bitset<32>> statuses;  // by WcStatus
  std::optional<Queue> queue;
  Ranges qp;       // 1: the device's first QP
  Ranges qp_num;   // as ibv_qp.qp_num
  Ranges dest_qp;  // for frames, the number of the destination
  Ranges psn;      // 0: the connection's first, in the direction of the request
  Ranges psn_num;  // the number in the packet
  Ranges message;  // 1: the QP's first work request, or the first that it answers
  Ranges size;     // bytes: of a frame's payload, of a work request's or completion's message
  Ranges wr_id;
  std::optional<NetworkElement> network;  // of kNetwork, which has no other
};

/// Selects, among the matching occurrences, those on which a rule acts. Occurrences are counted for
/// each flow separately, and each flow has its own stream of random numbers, so that flows do not
/// affect each other.
struct Trigger {
  Ranges nth;                        // the flow's first is 1
  Ranges nth_total;                  // the first of all flows is 1
  uint64_t every = 1;                // every n-th
  uint64_t burst = 1;                // and the following occurrences, this number in all
  uint64_t count = UINT64_MAX;       // maximum in each flow
  uint64_t total = UINT64_MAX;       // maximum in all flows
  double probability = 1;            // of the remaining ones
  std::optional<Duration> lifetime;  // from its first action
  Duration after{};                  // the NIC's time before which nothing matches
};

/// A change of a field in a header. If the packet does not have the field, nothing changes.
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
  uint32_t random_bits = 0;    // additional bits, anywhere from the BTH on
};

/// An injected frame: a changed copy of another frame, with which it is sent. It goes to the other
/// frame's receiver, or back to the other frame's sender.
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
  // Effects at the places `frame` and `cm`
  bool drop = false;
  Duration delay{};
  Duration jitter{};       // of frames and completions: a random additional delay up to this
  uint32_t duplicate = 0;  // further copies
  uint32_t reorder = 0;    // frames of its flow that overtake it
  std::optional<Corruption> corrupt;
  std::vector<FieldChange> rewrite;
  std::vector<MadeUpFrame> inject;
  std::optional<Rejection> reject;  // cm
  // Effects at the place `link`
  Duration latency{};
  uint64_t bits_per_second = 0;  // 0: no limit
  double loss = 0;               // probability
  // Effects at the place `request`
  bool rnr = false;               // as if there were no receive work request
  std::optional<uint8_t> answer;  // this AETH syndrome instead of the requested response
  bool silent = false;
  // Effects at the places `work_request` and `completion`
  std::optional<abi::WcStatus> status;
  uint32_t vendor_error = 0;
  // Effects at the place `completion`
  uint32_t hold = 0;  // until there are this many
  bool overrun = false;
  // Effects at the places `event` and `cm_event`
  std::optional<abi::EventType> event;
  std::optional<abi::ucma::EventType> cm_event;
  std::optional<int32_t> cm_status;
  // Effects at the place `verb`
  int error = 0;  // errno
  // Effects at the place `network`
  NetworkChange network;

  bool log = false;  // no effect except that the rule's action is logged
  // Effects at any place, in addition to the others: on the QP, the device or the process
  std::optional<abi::EventType> raise;
  std::optional<abi::ucma::EventType> raise_cm;
  std::optional<PortChange> port;
  std::optional<GidChange> gid;
  bool remove_device = false;
  bool kill = false;   // the process concerned
  bool pause = false;  // the NIC, until it is resumed or stepped
};

struct Rule {
  std::string name;
  Where where{};
  Selection which;
  Trigger when;
  Effects effects;
};

/// The rules of a scenario file, or rules that were injected later, with the text that a journal
/// records for them
struct RuleSet {
  std::string text;
  std::vector<Rule> rules;
};

/// The counts of a rule
struct RuleReport {
  std::string name;
  Where where{};
  uint64_t matched = 0;  // that matched the selection
  uint64_t fired = 0;
};

/// Returns whether the event is an affiliated asynchronous error, with which a QP enters the error
/// state (IBTA vol 1, 11.6.3.2).
constexpr bool fails_qp(abi::EventType type) {
  return type == abi::EventType::kQpFatal || type == abi::EventType::kQpReqErr ||
         type == abi::EventType::kQpAccessErr;
}

/// The lowest number of a call of librdmacm in Kinds: the call's number is kCmVerbs plus the number
/// of its command. A call for which the kernel has two commands has one number. The number of a
/// call of libibverbs is that of its abi::Op, all of which are below 100. OtherVerb has the numbers
/// of calls that share a command with others.
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
