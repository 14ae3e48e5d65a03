#include "emulator/sanitizer/nic/engine_findings.h"

#include <optional>
#include <variant>

#include "emulator/engine/faults/rule.h"

namespace rocemu::sanitizer {
namespace {

RefusalReason reason_of(engine::AccessObstacle obstacle) {
  switch (obstacle) {
    case engine::AccessObstacle::kUnknownKey:
      return RefusalReason::kUnknownKey;
    case engine::AccessObstacle::kDeregistered:
      return RefusalReason::kDeregistered;
    case engine::AccessObstacle::kOtherPd:
      return RefusalReason::kOtherPd;
    case engine::AccessObstacle::kOtherQp:
      return RefusalReason::kOtherQp;
    case engine::AccessObstacle::kNoAccess:
      return RefusalReason::kNoAccess;
    case engine::AccessObstacle::kBeyond:
      return RefusalReason::kBeyond;
  }
  return RefusalReason::kUnknownKey;
}

struct FindingOf {
  NicFinding operator()(const engine::ReceiveMissing& missing) const {
    return receive_queue_empty(
        {.qp = missing.qp.value,
         .srq = missing.srq ? std::optional(missing.srq->value) : std::nullopt,
         .from = missing.from.value,
         .is_repeated = missing.is_repeated});
  }
  NicFinding operator()(const engine::GrhMissing& missing) const {
    return ud_grh_ignored(missing.qp.value, missing.from.value, missing.payload);
  }
  NicFinding operator()(const engine::AccessRefused& refused) const {
    return access_refused({.qp = refused.qp.value,
                           .from = refused.from.value,
                           .rkey = refused.rkey,
                           .address = refused.address,
                           .length = refused.length,
                           .access = refused.access,
                           .reason = reason_of(refused.obstacle),
                           .opened_address = refused.opened_address,
                           .opened_length = refused.opened_length,
                           .is_window = refused.is_window});
  }
  NicFinding operator()(const engine::WritesUnordered& race) const {
    return remote_write_race({.qp = race.qp.value,
                              .other = race.other.value,
                              .rkey = race.rkey,
                              .address = race.address,
                              .length = race.length});
  }
};

}  // namespace

std::vector<EngineFinding> findings_in(const engine::Outputs& outputs, size_t before) {
  std::vector<EngineFinding> findings;
  for (const engine::Misuse& misuse : outputs.misuses)
    std::visit(
        [&](const auto& one) {
          std::optional<PeerRequest> request;
          if constexpr (requires { one.from; }) request = {one.from, one.qp};
          findings.push_back({one.client, FindingOf()(one), request});
        },
        misuse);
  bool overruns = false;  // by a rule of a scenario
  for (size_t i = before; i < outputs.list.size(); ++i) {
    if (const auto* fired = std::get_if<engine::RuleFired>(&outputs.list[i])) {
      overruns |= fired->rule->effects.overrun;
    } else if (const auto* failed = std::get_if<engine::CqFailed>(&outputs.list[i])) {
      if (!overruns)
        findings.push_back({failed->client, cq_overrun(failed->cq.value), std::nullopt});
    }
  }
  return findings;
}

}  // namespace rocemu::sanitizer
