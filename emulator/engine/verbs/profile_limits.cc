#include "emulator/engine/verbs/profile_limits.h"

#include <algorithm>
#include <cerrno>

namespace rocemu::engine {
namespace {

using abi::Op;
using abi::QpType;

constexpr uint32_t kXrcFlag = 1u << 20;  // IBV_DEVICE_XRC
/// The value of abi::PostRules::no_inline_room for a profile whose QPs can use the space of a WQE's
/// SGEs for inline data. as_granted() adds this space to the request, since the provider does not.
constexpr uint32_t kRoomInEngine = 1;
constexpr uint32_t kOptionalAccess = 0x3ff00000;  // IBV_ACCESS_OPTIONAL_RANGE

std::string above(uint64_t asked, std::string_view what, uint64_t limit) {
  return "asked for " + std::to_string(asked) + " " + std::string(what) + ", the device has " +
         std::to_string(limit);
}

/// Keeps the first limit that a request exceeds.
class Checker {
 public:
  void require(bool allowed, int error, std::string what) {
    if (!allowed && !refusal_) refusal_ = {error, std::move(what)};
  }
  void at_most(uint64_t asked, uint64_t limit, std::string_view what, int error) {
    if (asked > limit && !refusal_) refusal_ = {error, above(asked, what, limit)};
  }
  void one_more(uint64_t in_use, uint64_t limit, std::string_view what, int error) {
    if (in_use >= limit && !refusal_)
      refusal_ = {error, "all " + std::to_string(limit) + " " + std::string(what) +
                             " of the device are in use"};
  }
  std::optional<Refusal> take() { return std::move(refusal_); }

 private:
  std::optional<Refusal> refusal_;
};

int or_untouched(int error) {
  return error != 0 ? error : abi::kErrnoUntouched;
}

uint32_t either(uint32_t accepted, uint32_t advertised) {
  return accepted != 0 ? accepted : advertised;
}

void check_create_qp(Checker& check, const DeviceProfile& profile,
                     const decltype(abi::RequestBody::create_qp)& wanted, uint64_t in_use) {
  const QpRules& rules = profile.qp;
  const abi::DeviceAttr& attr = profile.attr;
  const auto type = static_cast<uint32_t>(wanted.type);
  check.require(type < 32 && (rules.types >> type & 1) != 0, or_untouched(rules.type_error),
                "the device has no QPs of type " + std::string(abi::name_of(wanted.type)));
  check.require(wanted.srq == 0 || attr.max_srq != 0, EOPNOTSUPP, "the device has no SRQs");
  if (wanted.type != QpType::kXrcRecv) {
    const abi::QpCap& cap = wanted.cap;
    const int error = or_untouched(rules.limit_error);
    const bool receives = wanted.srq == 0 && wanted.type != QpType::kXrcSend;
    check.at_most(cap.max_send_wr, either(rules.max_send_wr, attr.max_qp_wr), "send WRs", error);
    check.at_most(cap.max_send_sge, either(rules.max_send_sge, attr.max_sge), "send SGEs", error);
    if (receives) {
      check.at_most(cap.max_recv_wr, either(rules.max_recv_wr, attr.max_qp_wr), "receive WRs",
                    error);
      check.at_most(cap.max_recv_sge, either(rules.max_recv_sge, attr.max_sge), "receive SGEs",
                    error);
      check.require(cap.max_recv_wr >= rules.min_recv_wr, EINVAL,
                    "a QP without SRQ needs a receive WR on this device");
    }
    check.require(cap.max_send_wr >= rules.min_send_wr, EINVAL,
                  "a QP needs a send WR on this device");
    if (rules.inline_above == InlineAbove::kRefuse)
      check.at_most(cap.max_inline_data, attr.max_inline_data, "bytes of inline data", EINVAL);
  }
  check.one_more(in_use, attr.max_qp, "QPs", rules.exhausted_error);
}

void check_access(Checker& check, const DeviceProfile& profile, uint32_t access) {
  check.require((access & ~(profile.mr_access | kOptionalAccess)) == 0, profile.mr_access_error,
                "the device's memory regions do not have all of the access flags");
  // This check is equivalent to Linux's ib_check_mr_access() (include/rdma/ib_verbs.h).
  check.require((access & abi::kAccessOnDemand) == 0 || profile.attr.odp_general_caps != 0,
                EOPNOTSUPP, "the device has no on-demand paging");
}

void check_create_srq(Checker& check, const DeviceProfile& profile,
                      const decltype(abi::RequestBody::create_srq)& wanted, uint64_t in_use) {
  const abi::DeviceAttr& attr = profile.attr;
  check.require(attr.max_srq != 0, EOPNOTSUPP, "the device has no SRQs");
  check.require(wanted.type != abi::SrqType::kXrc || (attr.device_cap_flags & kXrcFlag) != 0,
                EOPNOTSUPP, "the device has no XRC");
  check.at_most(wanted.max_wr, attr.max_srq_wr, "WRs of an SRQ", EINVAL);
  check.at_most(wanted.max_sge, attr.max_srq_sge, "SGEs of an SRQ", EINVAL);
  check.one_more(in_use, attr.max_srq, "SRQs", ENOMEM);
}

void check_modify_qp(Checker& check, const DeviceProfile& profile, uint32_t mask,
                     const abi::QpAttr& wanted) {
  if ((mask & abi::kAttrMaxQpRdAtomic) != 0)
    check.at_most(wanted.max_rd_atomic, profile.attr.max_qp_init_rd_atom,
                  "outstanding READs and atomics as requester", EINVAL);
  if ((mask & abi::kAttrMaxDestRdAtomic) != 0)
    check.at_most(wanted.max_dest_rd_atomic, profile.attr.max_qp_rd_atom,
                  "outstanding READs and atomics as responder", EINVAL);
}

}  // namespace

std::optional<Refusal> refusal_of(const DeviceProfile& profile, const abi::Request& request,
                                  uint64_t in_use) {
  if (const auto found = profile.refused.find(request.op); found != profile.refused.end())
    return Refusal{found->second, "the driver does not have this verb"};
  Checker check;
  const abi::DeviceAttr& attr = profile.attr;
  const abi::Request::Body& in = request.body;
  switch (request.op) {
    case Op::kCreateQp:
      check_create_qp(check, profile, in.create_qp, in_use);
      break;
    case Op::kModifyQp:
      check_modify_qp(check, profile, in.modify_qp.mask, in.modify_qp.attr);
      break;
    case Op::kCreateCq:
      check.at_most(in.create_cq.capacity, attr.max_cqe, "CQEs", EINVAL);
      check.one_more(in_use, attr.max_cq, "CQs", ENOMEM);
      break;
    case Op::kResizeCq:
      check.at_most(in.resize_cq.capacity, attr.max_cqe, "CQEs", EINVAL);
      break;
    case Op::kModifyCq:
      check.require(attr.max_cq_moderation_count != 0, EOPNOTSUPP,
                    "the device has no CQ moderation");
      check.at_most(in.modify_cq.count, attr.max_cq_moderation_count, "completions per event",
                    EINVAL);
      check.at_most(in.modify_cq.period, attr.max_cq_moderation_period,
                    "microseconds between events", EINVAL);
      break;
    case Op::kCreateSrq:
      check_create_srq(check, profile, in.create_srq, in_use);
      break;
    case Op::kRegMr:
      check_access(check, profile, in.reg_mr.access);
      check.at_most(in.reg_mr.length, attr.max_mr_size, "bytes in a memory region", EINVAL);
      check.one_more(in_use, attr.max_mr, "memory regions", ENOMEM);
      break;
    case Op::kReregMr:
      if ((in.rereg_mr.flags & abi::kReregAccess) != 0)
        check_access(check, profile, in.rereg_mr.access);
      if ((in.rereg_mr.flags & abi::kReregTranslation) != 0)
        check.at_most(in.rereg_mr.length, attr.max_mr_size, "bytes in a memory region", EINVAL);
      break;
    case Op::kAllocMw:
      // Some drivers support memory windows although they report a maximum of 0.
      if (attr.max_mw != 0) check.one_more(in_use, attr.max_mw, "memory windows", ENOMEM);
      break;
    case Op::kAllocPd:
      check.one_more(in_use, attr.max_pd, "protection domains", ENOMEM);
      break;
    case Op::kCreateAh:
      check.one_more(in_use, attr.max_ah, "address handles", ENOMEM);
      break;
    case Op::kAllocDm:
      check.require(attr.max_dm_size != 0, EOPNOTSUPP, "the device has no device memory");
      check.at_most(in.alloc_dm.length, attr.max_dm_size - std::min(in_use, attr.max_dm_size),
                    "bytes of device memory", ENOMEM);
      break;
    case Op::kOpenXrcd:
      check.require((attr.device_cap_flags & kXrcFlag) != 0, EOPNOTSUPP, "the device has no XRC");
      break;
    case Op::kAttachMcast:
      check.require(attr.max_mcast_grp != 0, EOPNOTSUPP, "the device has no multicast");
      check.one_more(in_use, attr.max_mcast_qp_attach, "QPs of a multicast group", ENOMEM);
      break;
    default:
      break;
  }
  return check.take();
}

abi::Request as_granted(const DeviceProfile& profile, const abi::Request& request) {
  if (request.op != Op::kCreateQp) return request;
  abi::Request granted = request;
  abi::QpCap& cap = granted.body.create_qp.cap;
  uint32_t& bytes = cap.max_inline_data;
  if (profile.qp.inline_above == InlineAbove::kCap)
    bytes = std::min(bytes, profile.attr.max_inline_data);
  // Inline data can use the space of the SGEs in a WQE.
  if (profile.posts.no_inline_room == kRoomInEngine) {
    const uint64_t room = uint64_t{cap.max_send_sge} * sizeof(abi::Sge);
    const uint64_t most = profile.attr.max_inline_data;
    bytes = std::max(bytes, static_cast<uint32_t>(std::min(room, most)));
  }
  bytes = std::max(bytes, profile.qp.least_inline);
  return granted;
}

}  // namespace rocemu::engine
