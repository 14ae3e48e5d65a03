#include "emulator/scenario/rule_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>

#include "emulator/abi/control.h"
#include "emulator/abi/linux_names.h"
#include "emulator/abi/ucma.h"
#include "wire/aeth.h"
#include "wire/cm/cm_messages.h"
#include "wire/opcode.h"

namespace rocemu::scenario {
namespace {

using engine::faults::Answer;
using engine::faults::FieldChange;
using engine::faults::Kinds;
using engine::faults::verb_kind;
using engine::faults::Where;

template <class Enum>
constexpr uint32_t number(Enum value) {
  return static_cast<uint32_t>(value);
}

/// Returns all names of the table except those of the values `without`, which rules must not use.
template <class Value, size_t kCount, class... Without>
constexpr auto names_in(const std::array<abi::Named<Value>, kCount>& table, Without... without) {
  std::array<Name, kCount - sizeof...(without)> names{};
  size_t count = 0;
  for (const abi::Named<Value>& one : table) {
    if (((one.value == without) || ...)) continue;
    names[count++] = {one.name, number(one.value)};
  }
  return names;
}

constexpr auto kWcStatuses = names_in(abi::kWcStatusNames);
constexpr auto kEvents = names_in(abi::kEventTypeNames);
constexpr auto kCmEvents =
    names_in(abi::ucma::kEventTypeNames, abi::ucma::EventType::kGetEventFailed);
constexpr auto kWrOpcodes =
    names_in(abi::kWrOpcodeNames, abi::WrOpcode::kTso, abi::WrOpcode::kDriver1);
constexpr auto kWcOpcodes = names_in(abi::kWcOpcodeNames);

constexpr Name kPlaces[] = {
    {"frame", number(Where::kFrame)},     {"link", number(Where::kLink)},
    {"cm", number(Where::kCm)},           {"work_request", number(Where::kWorkRequest)},
    {"request", number(Where::kRequest)}, {"completion", number(Where::kCompletion)},
    {"event", number(Where::kEvent)},     {"cm_event", number(Where::kCmEvent)},
    {"verb", number(Where::kVerb)},       {"now", number(Where::kNow)},
    {"network", number(Where::kNetwork)},
};

using wire::CmAttribute;
constexpr Name kCmMessages[] = {
    {"REQ", number(CmAttribute::kReq)},          {"MRA", number(CmAttribute::kMra)},
    {"REJ", number(CmAttribute::kRej)},          {"REP", number(CmAttribute::kRep)},
    {"RTU", number(CmAttribute::kRtu)},          {"DREQ", number(CmAttribute::kDreq)},
    {"DREP", number(CmAttribute::kDrep)},        {"SIDR_REQ", number(CmAttribute::kSidrReq)},
    {"SIDR_REP", number(CmAttribute::kSidrRep)}, {"LAP", number(CmAttribute::kLap)},
    {"APR", number(CmAttribute::kApr)},
};

using Reason = wire::CmRejectReason;
constexpr Name kRejectReasons[] = {
    {"NO_QP", number(Reason::kNoQp)},
    {"NO_EEC", number(Reason::kNoEec)},
    {"NO_RESOURCES", number(Reason::kNoResources)},
    {"TIMEOUT", number(Reason::kTimeout)},
    {"UNSUPPORTED_REQUEST", number(Reason::kUnsupportedRequest)},
    {"INVALID_COMM_ID", number(Reason::kInvalidCommId)},
    {"INVALID_COMM_INSTANCE", number(Reason::kInvalidCommInstance)},
    {"INVALID_SERVICE_ID", number(Reason::kInvalidServiceId)},
    {"INVALID_TRANSPORT_SERVICE_TYPE", number(Reason::kInvalidTransportServiceType)},
    {"STALE_CONNECTION", number(Reason::kStaleConnection)},
    {"RDC_DOES_NOT_EXIST", number(Reason::kRdcDoesNotExist)},
    {"PRIMARY_REMOTE_GID", number(Reason::kPrimaryRemoteGid)},
    {"PRIMARY_REMOTE_LID", number(Reason::kPrimaryRemoteLid)},
    {"INVALID_PRIMARY_SL", number(Reason::kInvalidPrimarySl)},
    {"INVALID_PRIMARY_TRAFFIC_CLASS", number(Reason::kInvalidPrimaryTrafficClass)},
    {"INVALID_PRIMARY_HOP_LIMIT", number(Reason::kInvalidPrimaryHopLimit)},
    {"INVALID_PRIMARY_PACKET_RATE", number(Reason::kInvalidPrimaryPacketRate)},
    {"ALTERNATE_REMOTE_GID", number(Reason::kAlternateRemoteGid)},
    {"ALTERNATE_REMOTE_LID", number(Reason::kAlternateRemoteLid)},
    {"INVALID_ALTERNATE_SL", number(Reason::kInvalidAlternateSl)},
    {"INVALID_ALTERNATE_TRAFFIC_CLASS", number(Reason::kInvalidAlternateTrafficClass)},
    {"INVALID_ALTERNATE_HOP_LIMIT", number(Reason::kInvalidAlternateHopLimit)},
    {"INVALID_ALTERNATE_PACKET_RATE", number(Reason::kInvalidAlternatePacketRate)},
    {"PORT_AND_CM_REDIRECTION", number(Reason::kPortAndCmRedirection)},
    {"PORT_REDIRECTION", number(Reason::kPortRedirection)},
    {"INVALID_PATH_MTU", number(Reason::kInvalidPathMtu)},
    {"INSUFFICIENT_RESPONDER_RESOURCES", number(Reason::kInsufficientResponderResources)},
    {"CONSUMER", number(Reason::kConsumer)},
    {"RNR_RETRY_COUNT", number(Reason::kRnrRetryCount)},
    {"DUPLICATE_LOCAL_COMM_ID", number(Reason::kDuplicateLocalCommId)},
    {"INVALID_CLASS_VERSION", number(Reason::kInvalidClassVersion)},
    {"INVALID_PRIMARY_FLOW_LABEL", number(Reason::kInvalidPrimaryFlowLabel)},
    {"INVALID_ALTERNATE_FLOW_LABEL", number(Reason::kInvalidAlternateFlowLabel)},
};

constexpr Name kNaks[] = {
    {"PSN_SEQUENCE_ERROR", number(wire::NakCode::kPsnSequenceError)},
    {"INVALID_REQUEST", number(wire::NakCode::kInvalidRequest)},
    {"REMOTE_ACCESS_ERROR", number(wire::NakCode::kRemoteAccessError)},
    {"REMOTE_OPERATIONAL_ERROR", number(wire::NakCode::kRemoteOperationalError)},
    {"INVALID_RD_REQUEST", number(wire::NakCode::kInvalidRdRequest)},
};

using Field = FieldChange::Field;
constexpr Name kFields[] = {
    {"opcode", number(Field::kOpcode)},
    {"solicited", number(Field::kSolicited)},
    {"mig_req", number(Field::kMigReq)},
    {"tver", number(Field::kTver)},
    {"pkey", number(Field::kPkey)},
    {"fecn", number(Field::kFecn)},
    {"becn", number(Field::kBecn)},
    {"dest_qp", number(Field::kDestQp)},
    {"ack_req", number(Field::kAckReq)},
    {"psn", number(Field::kPsn)},
    {"va", number(Field::kVa)},
    {"rkey", number(Field::kRkey)},
    {"dma_length", number(Field::kDmaLength)},
    {"syndrome", number(Field::kSyndrome)},
    {"msn", number(Field::kMsn)},
    {"qkey", number(Field::kQkey)},
    {"src_qp", number(Field::kSrcQp)},
    {"imm", number(Field::kImmediate)},
    {"inv_rkey", number(Field::kInvalidateRkey)},
    {"swap_add", number(Field::kSwapAdd)},
    {"compare", number(Field::kCompare)},
    {"original", number(Field::kOriginal)},
    {"srq", number(Field::kSrq)},
    {"traffic_class", number(Field::kTrafficClass)},
    {"hop_limit", number(Field::kHopLimit)},
    {"udp_src_port", number(Field::kUdpSourcePort)},
};

std::vector<Name> make_errno_names() {
  constexpr int kHighest = 133;  // EHWPOISON
  std::vector<Name> names;
  for (int number = 1; number <= kHighest; ++number) {
    const char* name = abi::errno_name(number);
    if (name != nullptr) names.push_back({name, static_cast<uint32_t>(number)});
  }
  for (const Name& other : {Name{"ENOTSUP", ENOTSUP}, Name{"EWOULDBLOCK", EWOULDBLOCK}}) {
    if (std::string_view(abi::errno_name(static_cast<int>(other.value))) != other.text) {
      names.push_back(other);
    }
  }
  return names;
}

using engine::faults::OtherVerb;
using CmCommand = abi::ucma::Command;
/// Functions of libibverbs that send the same request as another function, but that rules can name
/// separately.
constexpr Name kOtherVerbs[] = {
    {"import_device", number(OtherVerb::kImportDevice)},
    {"reg_dm_mr", number(OtherVerb::kRegDmMr)},
    {"alloc_null_mr", number(OtherVerb::kAllocNullMr)},
};
constexpr Name kCmVerbs[] = {
    {"rdma_create_event_channel", verb_kind(CmCommand::kOpenChannel)},
    {"rdma_get_cm_event", verb_kind(CmCommand::kGetEvent)},
    {"rdma_create_id", verb_kind(CmCommand::kCreateId)},
    {"rdma_destroy_id", verb_kind(CmCommand::kDestroyId)},
    {"rdma_bind_addr", verb_kind(CmCommand::kBind)},
    {"rdma_resolve_addr", verb_kind(CmCommand::kResolveAddr)},
    {"rdma_resolve_route", verb_kind(CmCommand::kResolveRoute)},
    {"rdma_query_route", verb_kind(CmCommand::kQuery)},
    {"rdma_connect", verb_kind(CmCommand::kConnect)},
    {"rdma_listen", verb_kind(CmCommand::kListen)},
    {"rdma_accept", verb_kind(CmCommand::kAccept)},
    {"rdma_establish", number(OtherVerb::kRdmaEstablish)},
    {"rdma_reject", verb_kind(CmCommand::kReject)},
    {"rdma_reject_ece", verb_kind(CmCommand::kReject)},
    {"rdma_disconnect", verb_kind(CmCommand::kDisconnect)},
    {"rdma_init_qp_attr", verb_kind(CmCommand::kInitQpAttr)},
    {"rdma_set_option", verb_kind(CmCommand::kSetOption)},
    {"rdma_notify", verb_kind(CmCommand::kNotify)},
    {"rdma_migrate_id", verb_kind(CmCommand::kMigrateId)},
    {"rdma_join_multicast", verb_kind(CmCommand::kJoinMcast)},
    {"rdma_join_multicast_ex", verb_kind(CmCommand::kJoinMcast)},
    {"rdma_leave_multicast", verb_kind(CmCommand::kLeaveMcast)},
    {"rdma_write_cm_event", verb_kind(CmCommand::kWriteCmEvent)},
};

/// Returns the names of all verbs. Functions that send the same request to the NIC are one verb
/// with several names.
std::vector<Name> make_verb_names() {
  std::vector<Name> names;
  for (const abi::OperationInfo& operation : abi::kOperations) {
    operation.for_each_function([&](std::string_view function) {
      const auto* other = std::ranges::find(kOtherVerbs, function, &Name::text);
      names.push_back(
          {function, other == std::end(kOtherVerbs) ? number(operation.op) : other->value});
    });
  }
  names.insert(names.end(), std::begin(kCmVerbs), std::end(kCmVerbs));
  return names;
}

using wire::Operation;

/// Returns the names of all operations and of their groups. Each group precedes its first
/// operation.
std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const wire::OperationName& operation : wire::kOperationNames) {
    const std::string_view group = operation.group;
    if (!group.empty() && std::ranges::find(names, group) == names.end()) {
      names.emplace_back(group);
    }
    names.emplace_back(operation.name);
  }
  return names;
}

constexpr std::bitset<4> answer_bit(Answer answer) {
  return std::bitset<4>(1ull << static_cast<uint32_t>(answer));
}

template <class Predicate>
Kinds opcodes_where(Predicate predicate) {
  Kinds kinds;
  for (uint32_t i = 0; i < kinds.size(); ++i) {
    const wire::OpcodeInfo* info = wire::find_opcode(static_cast<uint8_t>(i));
    if (info != nullptr && predicate(*info)) kinds.set(i);
  }
  return kinds;
}

/// Returns the name with the transport, such as "RC_SEND_FIRST". bare_name() returns it without the
/// transport: "SEND_FIRST".
std::string opcode_name(const wire::OpcodeInfo& info) {
  return normalized(info.name);
}
std::string bare_name(const wire::OpcodeInfo& info) {
  const std::string name = opcode_name(info);
  const size_t gap = name.find('_');
  return gap == std::string::npos ? name : name.substr(gap + 1);
}

/// Returns the edit distance: the smallest number of changes of one character, or swaps of two
/// adjacent characters, that turn `a` into `b`.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, row(b.size() + 1), next(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      next[j] =
          std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    before = row;
    row.swap(next);
  }
  return row[b.size()];
}

}  // namespace

const Names kPlaceNames{"place", "", kPlaces};
const Names kWcStatusNames{"completion status", "IBV_WC_", kWcStatuses};
const Names kEventNames{"async event", "IBV_EVENT_", kEvents};
const Names kCmEventNames{"rdma_cm event", "RDMA_CM_EVENT_", kCmEvents};
const Names kCmMessageNames{"message of the connection manager", "", kCmMessages};
const Names kRejectReasonNames{"reject reason", "", kRejectReasons};
const Names kWrOpcodeNames{"work request opcode", "IBV_WR_", kWrOpcodes};
const Names kWcOpcodeNames{"completion opcode", "IBV_WC_", kWcOpcodes};
const Names kNakNames{"NAK code", "", kNaks};
const Names kFieldNames{"header field", "", kFields};

const Names& errno_names() {
  static const std::vector<Name> names = make_errno_names();
  static const Names result{"errno", "", names};
  return result;
}

const Names& verb_names() {
  static const std::vector<Name> names = make_verb_names();
  static const Names result{"verb", "IBV_", names};
  return result;
}

std::string verb_named(std::string_view text) {
  const Names& verbs = verb_names();
  std::string wanted = normalized(text);
  if (wanted.starts_with(verbs.prefix)) wanted.erase(0, verbs.prefix.size());
  for (const Name& verb : verbs.names)
    if (normalized(verb.text) == wanted) return std::string(verb.text);
  return "";
}

std::string normalized(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    c = c == '-' || c == ' ' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return result;
}

std::optional<uint32_t> Names::find(std::string_view text) const {
  std::string wanted = normalized(text);
  if (!prefix.empty() && wanted.starts_with(prefix)) wanted.erase(0, prefix.size());
  for (const Name& name : names) {
    if (normalized(name.text) == wanted) return name.value;
  }
  return std::nullopt;
}

std::vector<std::string_view> Names::texts() const {
  std::vector<std::string_view> result;
  for (const Name& name : names) result.push_back(name.text);
  return result;
}

std::string_view Names::text_of(uint32_t value) const {
  const auto found = std::ranges::find(names, value, &Name::value);
  return found == names.end() ? std::string_view() : found->text;
}

std::optional<Opcodes> find_opcodes(std::string_view text) {
  const std::string wanted = normalized(text);
  const auto is_ack = [](const wire::OpcodeInfo& info) {
    return info.operation == Operation::kAck;
  };
  if (wanted == "ACK") return Opcodes{opcodes_where(is_ack), answer_bit(Answer::kAck)};
  if (wanted == "NAK") return Opcodes{opcodes_where(is_ack), answer_bit(Answer::kNak)};
  if (wanted == "RNR_NAK") return Opcodes{opcodes_where(is_ack), answer_bit(Answer::kRnrNak)};
  if (wanted == "RESPONSE") {
    return Opcodes{opcodes_where([](const auto& info) { return info.is_response; }), 0b1111};
  }
  if (wanted == "REQUEST") {
    return Opcodes{opcodes_where([](const auto& info) { return !info.is_response; }),
                   answer_bit(Answer::kNone)};
  }
  const Kinds named = opcodes_where([&](const auto& info) {
    return std::ranges::any_of(wire::kOperationNames, [&](const wire::OperationName& operation) {
      return operation.operation == info.operation &&
             (operation.name == wanted || (!wanted.empty() && operation.group == wanted));
    });
  });
  if (named.any()) return Opcodes{named, answer_bit(Answer::kNone)};
  const Kinds kinds = opcodes_where(
      [&](const auto& info) { return opcode_name(info) == wanted || bare_name(info) == wanted; });
  if (kinds.none()) return std::nullopt;
  return Opcodes{kinds, 0b1111};
}

std::optional<Kinds> find_transport(std::string_view text) {
  const std::string wanted = normalized(text) + "_";
  const Kinds kinds =
      opcodes_where([&](const auto& info) { return opcode_name(info).starts_with(wanted); });
  if (kinds.none()) return std::nullopt;
  return kinds;
}

std::optional<uint8_t> find_opcode(std::string_view text) {
  const std::string wanted = normalized(text);
  if (wanted == "ACK") return static_cast<uint8_t>(wire::Opcode::kRcAck);
  std::optional<uint8_t> found;
  for (uint32_t i = 256; i-- > 0;) {  // the lowest is RC's
    const wire::OpcodeInfo* info = wire::find_opcode(static_cast<uint8_t>(i));
    if (info == nullptr) continue;
    if (opcode_name(*info) == wanted) return static_cast<uint8_t>(i);
    if (bare_name(*info) == wanted) found = static_cast<uint8_t>(i);
  }
  return found;
}

std::vector<std::string> opcode_names() {
  std::vector<std::string> names{"REQUEST", "RESPONSE", "ACK", "NAK", "RNR_NAK"};
  std::ranges::move(operation_names(), std::back_inserter(names));
  for (uint32_t i = 0; i < 256; ++i) {
    const wire::OpcodeInfo* info = wire::find_opcode(static_cast<uint8_t>(i));
    if (info == nullptr) continue;
    names.push_back(opcode_name(*info));
    names.push_back(bare_name(*info));
  }
  return names;
}

std::string_view nearest(std::string_view text, std::span<const std::string_view> candidates) {
  const std::string wanted = normalized(text.substr(0, 64));
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, wanted.size() / 3) + 1;
  for (const std::string_view candidate : candidates) {
    const size_t there = distance(wanted, normalized(candidate));
    if (there < best_distance) {
      best = candidate;
      best_distance = there;
    }
  }
  return best;
}

}  // namespace rocemu::scenario
