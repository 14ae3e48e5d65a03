#include "emulator/sanitizer/nic/engine_findings.h"

#include <optional>
#include <variant>

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
                           .opened_length = refused.opened_length});
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

NicFinding finding_of(const engine::Misuse& misuse) {
  return std::visit(FindingOf(), misuse);
}

NicFinding finding_of(const engine::CqFailed& failed) {
  return cq_overrun(failed.cq.value);
}

engine::ClientId client_of(const engine::Misuse& misuse) {
  return std::visit([](const auto& one) { return one.client; }, misuse);
}

}  // namespace rocemu::sanitizer
