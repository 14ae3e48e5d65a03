// Checks rules for parts that are valid alone, but not in combination.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "emulator/abi/control.h"
#include "emulator/scenario/effects.h"
#include "emulator/scenario/rule_keys.h"

namespace rocemu::scenario {
namespace {

using abi::WcOpcode;
using abi::WcStatus;
using abi::WrOpcode;
using engine::faults::Effects;
using engine::faults::Kinds;
using engine::faults::Queue;
using engine::faults::Rule;
using engine::faults::Where;

template <class... Kind>
Kinds set_of(Kind... kind) {
  Kinds kinds;
  (kinds.set(static_cast<size_t>(kind)), ...);
  return kinds;
}

bool is_within(const Kinds& kinds, const Kinds& others) {
  return kinds.any() && (kinds & ~others).none();
}

/// Two manners whose effects exclude each other, and the reason
struct Exclusion {
  Manner one, other;
  std::string_view reason;
};

constexpr std::string_view kDroppedAndMoved =
    "a dropped object cannot also be delayed, doubled, reordered or changed";
constexpr Exclusion kExclusions[] = {
    {Manner::kDrops, Manner::kMoves, kDroppedAndMoved},
    {Manner::kDrops, Manner::kChanges, kDroppedAndMoved},
    {Manner::kRejects, Manner::kMoves,
     "a rejected request does not arrive, so it cannot be delayed, doubled or reordered"},
    {Manner::kAnswers, Manner::kAnswers, "give only one of rnr, nak and silent"},
    {Manner::kDrops, Manner::kAlters, "a dropped object cannot also be changed or held"},
};

void check_effects(Reading in, const Node& node) {
  const NodeReader& reader = in.reader;
  const Effects& effects = in.rule.effects;
  const auto count = [&](Manner manner) {
    return std::ranges::count_if(effect_table(), [&](const Effect& effect) {
      return effect.manner == manner && effect.is_in(effects);
    });
  };
  for (const auto& [one, other, reason] : kExclusions) {
    const bool are_both = one == other ? count(one) > 1 : count(one) > 0 && count(other) > 0;
    if (are_both) reader.fail(node, std::string(reason));
  }
  if (effects.vendor_error != 0 && !effects.status) {
    reader.fail(node, "vendor_err needs a status");
  }
  const bool delivers_cm = effects.cm_event || effects.raise_cm;
  if (in.rule.where == Where::kNow && effects.cm_status && !delivers_cm) {
    reader.fail(node, "status needs raise_cm with an event");
  }
}

void check_selection(Reading in, const Node& node) {
  const Kinds kReceives = set_of(WcOpcode::kRecv, WcOpcode::kRecvRdmaWithImm);
  const auto& which = in.rule.which;
  if (!which.kinds) return;
  if (which.kinds->none())
    in.reader.fail(node, "the rule's transport has none of the rule's opcodes");
  if (in.rule.where != Where::kCompletion || !which.queue) return;
  const Kinds of_queue = *which.queue == Queue::kReceive ? kReceives : ~kReceives;
  if ((*which.kinds & of_queue).none()) {
    in.reader.fail(node,
                   "the rule's queue has none of the rule's opcodes: RECV and RECV_RDMA_WITH_IMM "
                   "belong to recv, all others to send");
  }
}

// Warns if the selected completions never have the status that the rule gives them (IBTA vol 1,
// 11.6.2).
void check_wc_status(Reading in, const Node& node) {
  if (!in.rule.effects.status) return;
  const auto& which = in.rule.which;
  const bool at_completion = in.rule.where == Where::kCompletion;
  const Kinds kinds = which.kinds.value_or(Kinds());
  const Kinds local = at_completion ? set_of(WcOpcode::kBindMw, WcOpcode::kLocalInv)
                                    : set_of(WrOpcode::kBindMw, WrOpcode::kLocalInv);
  const Kinds without_receive =
      at_completion ? set_of(WcOpcode::kRdmaRead, WcOpcode::kCompSwap, WcOpcode::kFetchAdd)
                    : set_of(WrOpcode::kRdmaRead, WrOpcode::kAtomicCmpAndSwp,
                             WrOpcode::kAtomicFetchAndAdd, WrOpcode::kRdmaWrite);
  const bool is_receive =
      at_completion && ((which.queue && *which.queue == Queue::kReceive) ||
                        is_within(kinds, set_of(WcOpcode::kRecv, WcOpcode::kRecvRdmaWithImm)));
  const auto warn = [&](std::string_view what) {
    in.reader.warn(
        node, fmt::format("{} never completes with {}", what,
                          kWcStatusNames.text_of(static_cast<uint32_t>(*in.rule.effects.status))));
  };
  switch (*in.rule.effects.status) {
    case WcStatus::kMwBindErr:
      if (is_receive) return warn("a receive");
      if (kinds.any() && (kinds & local).none())
        return warn("an operation that binds no memory window");
      return;
    case WcStatus::kRnrRetryExcErr:
      if (is_within(kinds, without_receive))
        return warn("an operation that consumes no receive at the peer");
      [[fallthrough]];
    case WcStatus::kBadRespErr:
    case WcStatus::kRemInvReqErr:
    case WcStatus::kRemAccessErr:
    case WcStatus::kRemOpErr:
    case WcStatus::kRetryExcErr:
    case WcStatus::kRemInvRdReqErr:
      if (is_receive) return warn("a receive");
      if (is_within(kinds, local)) return warn("an operation that sends nothing");
      return;
    default:
      return;
  }
}

void check_cm_status(Reading in, const Node& node) {
  using abi::ucma::EventType;
  const Effects& effects = in.rule.effects;
  if (effects.cm_status.value_or(0) <= 0) return;
  const Kinds with_reason = set_of(EventType::kRejected, EventType::kUnreachable);
  const auto event = effects.cm_event ? effects.cm_event : effects.raise_cm;
  const Kinds kinds = event ? set_of(*event) : in.rule.which.kinds.value_or(with_reason);
  if (is_within(kinds, with_reason)) return;
  in.reader.fail(
      node,
      fmt::format("status {} is a reject reason, which only REJECTED has; for other events, use "
                  "0 or an errno, such as -ETIMEDOUT",
                  *effects.cm_status));
}

// Refuses the CM events INTERNAL and ADDRINFO_RESOLVED. librdmacm would use their contents: it
// would follow the pointer in the former, and query the services that the latter names.
void check_cm_event(Reading in, const Node& node) {
  using abi::ucma::EventType;
  const Effects& effects = in.rule.effects;
  const auto event = effects.cm_event ? effects.cm_event : effects.raise_cm;
  if (event == EventType::kInternal || event == EventType::kAddrinfoResolved)
    in.reader.fail(node, fmt::format("librdmacm itself generates {}; a rule cannot raise it",
                                     abi::name_of(*event)));
}

// Warns if the verb never fails with this errno. Most verbs may fail with any errno, because their
// man pages list none; only that of ibv_advise_mr(3) lists them. For ibv_start_poll(3) and
// ibv_next_poll(3), ENOENT is not a failure.
void check_errno(Reading in, const Node& node) {
  constexpr int kOfAdviseMr[] = {EOPNOTSUPP, EINVAL, EFAULT, ENOENT, ENOMEM, ENOSYS, EPERM};
  const int error = in.rule.effects.error;
  if (in.rule.where != Where::kVerb || error == 0 || !in.rule.which.kinds) return;
  const Kinds& kinds = *in.rule.which.kinds;
  if (kinds == set_of(abi::Op::kAdviseMr) &&
      std::ranges::find(kOfAdviseMr, error) == std::end(kOfAdviseMr)) {
    in.reader.warn(node, fmt::format("ibv_advise_mr(3) never fails with {}",
                                     errno_names().text_of(static_cast<uint32_t>(error))));
  }
  if (error == ENOENT && is_within(kinds, set_of(abi::Op::kPollCq, abi::Op::kNextPoll))) {
    in.reader.warn(node,
                   "ENOENT from ibv_start_poll(3) and ibv_next_poll(3) means that the CQ is "
                   "empty, not that the call failed");
  }
}

// Refuses to change an event into one about another kind of object. With an event, libibverbs gives
// the program a pointer to the QP, CQ or SRQ, or the number of the port (ibv_get_async_event(3)).
void check_event(Reading in, const Node& node) {
  using abi::EventType;
  if (!in.rule.effects.event) return;
  const Kinds kGroups[] = {
      set_of(EventType::kQpFatal, EventType::kQpReqErr, EventType::kQpAccessErr,
             EventType::kCommEst, EventType::kSqDrained, EventType::kPathMig,
             EventType::kPathMigErr, EventType::kQpLastWqeReached),
      set_of(EventType::kCqErr), set_of(EventType::kSrqErr, EventType::kSrqLimitReached),
      set_of(EventType::kDeviceFatal, EventType::kPortActive, EventType::kPortErr,
             EventType::kLidChange, EventType::kPkeyChange, EventType::kSmChange,
             EventType::kClientReregister, EventType::kGidChange, EventType::kDeviceSpeedChange)};
  const auto becomes = static_cast<size_t>(*in.rule.effects.event);
  const Kinds from = in.rule.which.kinds.value_or(Kinds());
  for (const Kinds& group : kGroups) {
    if (group.test(becomes) && is_within(from, group)) return;
  }
  in.reader.fail(node,
                 "a rule cannot turn an event of one kind of object (QP, CQ, SRQ, device) into "
                 "an event of another kind; name the events that the rule changes, for example "
                 "event: QP_FATAL");
}

}  // namespace

void check_consistency(Reading in, const Node& effects) {
  check_network_rule(in, effects);
  check_effects(in, effects);
  check_selection(in, effects);
  check_wc_status(in, effects);
  check_cm_status(in, effects);
  check_cm_event(in, effects);
  check_errno(in, effects);
  check_event(in, effects);
}

}  // namespace rocemu::scenario
