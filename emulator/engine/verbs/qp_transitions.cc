#include "emulator/engine/verbs/qp_transitions.h"

#include <cerrno>

#include "emulator/engine/base/limits.h"

namespace rocemu::engine {

using namespace abi;

namespace {

constexpr uint32_t kConnectedAlways = kAttrAccessFlags | kAttrAltPath | kAttrPathMigState;

std::optional<AttributeRule> rc_rule(QpState from, QpState to) {
  switch (from) {
    case QpState::kReset:
      if (to == QpState::kInit) return {{kAttrPkeyIndex | kAttrPort | kAttrAccessFlags, 0}};
      break;
    case QpState::kInit:
      if (to == QpState::kInit) return {{0, kAttrPkeyIndex | kAttrPort | kAttrAccessFlags}};
      if (to == QpState::kRtr) {
        return {{kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn | kAttrMaxDestRdAtomic |
                     kAttrMinRnrTimer,
                 kAttrAltPath | kAttrAccessFlags | kAttrPkeyIndex}};
      }
      break;
    case QpState::kRtr:
      if (to == QpState::kRts) {
        return {{kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry | kAttrSqPsn | kAttrMaxQpRdAtomic,
                 kAttrCurState | kConnectedAlways | kAttrMinRnrTimer}};
      }
      break;
    case QpState::kRts:
      if (to == QpState::kRts) return {{0, kAttrCurState | kConnectedAlways | kAttrMinRnrTimer}};
      if (to == QpState::kSqd) return {{0, kAttrEnSqdAsyncNotify}};
      break;
    case QpState::kSqd:
      if (to == QpState::kRts) return {{0, kAttrCurState | kConnectedAlways | kAttrMinRnrTimer}};
      if (to == QpState::kSqd) {
        return {{0, kAttrPort | kAttrAv | kAttrTimeout | kAttrRetryCnt | kAttrRnrRetry |
                        kAttrMaxQpRdAtomic | kAttrMaxDestRdAtomic | kAttrPkeyIndex |
                        kAttrMinRnrTimer | kConnectedAlways}};
      }
      break;
    case QpState::kSqe:  // never entered: a failed send moves an RC QP to the error state
    case QpState::kErr:
      break;
  }
  return std::nullopt;
}

std::optional<AttributeRule> uc_rule(QpState from, QpState to) {
  constexpr uint32_t kRunning = kAttrCurState | kConnectedAlways;
  switch (from) {
    case QpState::kReset:
      if (to == QpState::kInit) return {{kAttrPkeyIndex | kAttrPort | kAttrAccessFlags, 0}};
      break;
    case QpState::kInit:
      if (to == QpState::kInit) return {{0, kAttrPkeyIndex | kAttrPort | kAttrAccessFlags}};
      if (to == QpState::kRtr) {
        return {{kAttrAv | kAttrPathMtu | kAttrDestQpn | kAttrRqPsn,
                 kAttrAltPath | kAttrAccessFlags | kAttrPkeyIndex}};
      }
      break;
    case QpState::kRtr:
      if (to == QpState::kRts) return {{kAttrSqPsn, kRunning}};
      break;
    case QpState::kRts:
      if (to == QpState::kRts) return {{0, kRunning}};
      if (to == QpState::kSqd) return {{0, kAttrEnSqdAsyncNotify}};
      break;
    case QpState::kSqd:
      if (to == QpState::kRts) return {{0, kRunning}};
      if (to == QpState::kSqd) return {{0, kAttrAv | kAttrPkeyIndex | kConnectedAlways}};
      break;
    case QpState::kSqe:
      if (to == QpState::kRts) return {{0, kAttrCurState | kAttrAccessFlags}};
      break;
    case QpState::kErr:
      break;
  }
  return std::nullopt;
}

std::optional<AttributeRule> ud_rule(QpState from, QpState to) {
  switch (from) {
    case QpState::kReset:
      if (to == QpState::kInit) return {{kAttrPkeyIndex | kAttrPort | kAttrQkey, 0}};
      break;
    case QpState::kInit:
      if (to == QpState::kInit) return {{0, kAttrPkeyIndex | kAttrPort | kAttrQkey}};
      if (to == QpState::kRtr) return {{0, kAttrPkeyIndex | kAttrQkey}};
      break;
    case QpState::kRtr:
      if (to == QpState::kRts) return {{kAttrSqPsn, kAttrCurState | kAttrQkey}};
      break;
    case QpState::kRts:
      if (to == QpState::kRts) return {{0, kAttrCurState | kAttrQkey}};
      if (to == QpState::kSqd) return {{0, kAttrEnSqdAsyncNotify}};
      break;
    case QpState::kSqd:
      if (to == QpState::kRts) return {{0, kAttrCurState | kAttrQkey}};
      if (to == QpState::kSqd) return {{0, kAttrPkeyIndex | kAttrQkey}};
      break;
    case QpState::kSqe:
      if (to == QpState::kRts) return {{0, kAttrCurState | kAttrQkey}};
      break;
    case QpState::kErr:
      break;
  }
  return std::nullopt;
}

/// Returns the rule for an XRC QP, which has only one half of an RC QP (annex A14).
std::optional<AttributeRule> half_rule(QpType type, QpState from, QpState to) {
  auto rule = rc_rule(from, to);
  if (rule) {
    rule->required = relevant_attributes(type, rule->required);
    rule->optional = relevant_attributes(type, rule->optional);
  }
  return rule;
}

std::optional<AttributeRule> rule_within_type(QpType type, QpState from, QpState to) {
  switch (type) {
    case QpType::kRc:
      return rc_rule(from, to);
    case QpType::kUc:
      return uc_rule(from, to);
    case QpType::kUd:
      return ud_rule(from, to);
    case QpType::kXrcSend:
    case QpType::kXrcRecv:
      return half_rule(type, from, to);
  }
  return std::nullopt;
}

bool in_24_bits(uint32_t value) {
  return value <= 0xffffff;
}

}  // namespace

uint32_t relevant_attributes(QpType type, uint32_t mask) {
  constexpr uint32_t kResponderOnly = kAttrMaxDestRdAtomic | kAttrMinRnrTimer;
  constexpr uint32_t kRequesterOnly = kAttrRetryCnt | kAttrRnrRetry | kAttrMaxQpRdAtomic;
  if (type == QpType::kXrcSend) return mask & ~kResponderOnly;
  if (type == QpType::kXrcRecv) return mask & ~kRequesterOnly;
  return mask;
}

std::optional<AttributeRule> transition_rule(QpType type, QpState from, QpState to) {
  // IBTA vol 1, 10.3.1: every state can be left for Reset or Error. No other attribute may be set.
  if (to == QpState::kReset || to == QpState::kErr) return AttributeRule{0, 0};
  return rule_within_type(type, from, to);
}

int check_attributes(QpType type, QpState from, const QpAttr& attr, uint32_t mask, Mtu active_mtu) {
  if ((mask & kAttrState) != 0 && attr.qp_state > static_cast<uint32_t>(QpState::kErr)) {
    return EINVAL;
  }
  const QpState to = (mask & kAttrState) != 0 ? static_cast<QpState>(attr.qp_state) : from;
  const auto rule = transition_rule(type, from, to);
  if (!rule) return EINVAL;
  const uint32_t given = mask & ~uint32_t{kAttrState};
  if ((given & rule->required) != rule->required) return EINVAL;
  if ((given & ~(rule->required | rule->optional)) != 0) return EINVAL;

  const auto has = [given](QpAttrMask bit) { return (given & bit) != 0; };
  // The current state that the caller names must be the state of the QP.
  if (has(kAttrCurState) && attr.cur_qp_state != static_cast<uint32_t>(from)) return EINVAL;
  if (has(kAttrPort) && attr.port_num != 1) return EINVAL;
  if (has(kAttrPkeyIndex) && attr.pkey_index >= kPkeyTableLength) return EINVAL;
  if (has(kAttrPathMtu) && (attr.path_mtu < static_cast<uint32_t>(Mtu::k256) ||
                            attr.path_mtu > static_cast<uint32_t>(active_mtu))) {
    return EINVAL;
  }
  if (has(kAttrDestQpn) && !in_24_bits(attr.dest_qp_num)) return EINVAL;
  if (has(kAttrTimeout) && attr.timeout > 31) return EINVAL;
  if (has(kAttrRetryCnt) && attr.retry_cnt > 7) return EINVAL;
  if (has(kAttrRnrRetry) && attr.rnr_retry > 7) return EINVAL;
  if (has(kAttrMinRnrTimer) && attr.min_rnr_timer > 31) return EINVAL;
  if (has(kAttrMaxQpRdAtomic) && attr.max_rd_atomic > kMaxRdAtomic) return EINVAL;
  if (has(kAttrMaxDestRdAtomic) && attr.max_dest_rd_atomic > kMaxRdAtomic) return EINVAL;
  // RoCE has no alternate paths, because no subnet manager assigns them.
  if (has(kAttrAltPath)) return EINVAL;
  return 0;
}

void apply_attributes(const QpAttr& from, uint32_t mask, QpAttr& to) {
  const auto has = [mask](QpAttrMask bit) { return (mask & bit) != 0; };
  if (has(kAttrEnSqdAsyncNotify)) to.en_sqd_async_notify = from.en_sqd_async_notify;
  if (has(kAttrAccessFlags)) to.qp_access_flags = from.qp_access_flags;
  if (has(kAttrPkeyIndex)) to.pkey_index = from.pkey_index;
  if (has(kAttrPort)) to.port_num = from.port_num;
  if (has(kAttrQkey)) to.qkey = from.qkey;
  if (has(kAttrAv)) to.ah_attr = from.ah_attr;
  if (has(kAttrPathMtu)) to.path_mtu = from.path_mtu;
  if (has(kAttrTimeout)) to.timeout = from.timeout;
  if (has(kAttrRetryCnt)) to.retry_cnt = from.retry_cnt;
  if (has(kAttrRnrRetry)) to.rnr_retry = from.rnr_retry;
  // Some programs pass results of lrand48() here. The PSN on the wire has 24 bits, and query_qp
  // returns 24 bits.
  if (has(kAttrRqPsn)) to.rq_psn = from.rq_psn & 0xffffff;
  if (has(kAttrSqPsn)) to.sq_psn = from.sq_psn & 0xffffff;
  if (has(kAttrMaxQpRdAtomic)) to.max_rd_atomic = from.max_rd_atomic;
  if (has(kAttrMaxDestRdAtomic)) to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  if (has(kAttrMinRnrTimer)) to.min_rnr_timer = from.min_rnr_timer;
  if (has(kAttrDestQpn)) to.dest_qp_num = from.dest_qp_num;
  if (has(kAttrPathMigState)) to.path_mig_state = from.path_mig_state;
}

}  // namespace rocemu::engine
