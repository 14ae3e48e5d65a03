// ibv_create_cq_ex(3): the completion queue whose completions are read one by one, each field by a
// separate function.
#include <cerrno>

#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/context/device_clock.h"
#include "verbs_provider/context/sanitizer_hooks.h"
#include "verbs_provider/context/verb.h"
#include "verbs_provider/datapath/take_completion.h"
#include "verbs_provider/hooks/provider_calls.h"
#include "verbs_provider/objects/make_cq.h"
#include "verbs_provider/polling/empty_poll.h"
#include "verbs_provider/structs/cq.h"
#include "verbs_provider/structs/pd.h"

namespace rocemu::provider {
namespace {

const abi::Cqe& current(ibv_cq_ex* cq) {
  return ours<Cq>(cq)->current;
}

// ---- Iteration over the completions ---------------------------------------------------------

bool advance(Cq* cq, uint64_t produced) {
  ibv_cq_ex& base = cq->verbs.cq_ex;
  WritablePage none_known;  // the program ran since the previous completion
  if (!take(*cq, produced, &cq->current, none_known)) return false;
  base.wr_id = cq->current.wr_id;
  base.status = static_cast<ibv_wc_status>(cq->current.status);
  return true;
}

/// Starts polling. Locks the CQ and returns 0, or returns an error and leaves the CQ unlocked: "If
/// an error code is given, end_poll shouldn't be called."
int start_poll(ibv_cq_ex* base, ibv_poll_cq_attr* attr) {
  if (attr->comp_mask != 0) return EINVAL;
  if (const int error = ask(base->context, abi::Op::kPollCq, base->handle); error != 0)
    return error;
  Cq* cq = ours<Cq>(base);
  if (sanitizer() != nullptr) [[unlikely]]
    sanitizer()->polls(&cq->verbs.cq);
  cq->lock.lock();
  note_poll(cq);
  if (!cq->overran() && advance(cq, cq->produced())) {
    cq->empty_polls = 0;
    note_completion(cq);
    return 0;
  }
  const bool overran = cq->overran();
  EmptyPoll empty(cq);
  cq->lock.unlock();
  return !overran && empty.wait(base->context) ? ENOENT : EIO;
}

/// Takes the next completion. The CQ stays locked after an error, too: "If an error code is given,
/// end_poll should still be called."
int next_poll(ibv_cq_ex* base) {
  if (const int error = ask(base->context, abi::Op::kNextPoll, base->handle); error != 0) {
    return error;
  }
  Cq* cq = ours<Cq>(base);
  if (sanitizer() != nullptr) [[unlikely]]
    sanitizer()->polls(&cq->verbs.cq);
  if (cq->overran()) return EIO;
  return advance(cq, cq->produced()) ? 0 : ENOENT;
}

void end_poll(ibv_cq_ex* base) {
  Cq* cq = ours<Cq>(base);
  cq->lock.unlock();
  turns::after_call("ibv_end_poll");
}

// ---- The fields of the current completion ----------------------------------------------------

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) {
  return static_cast<ibv_wc_opcode>(current(cq).opcode);
}
uint32_t read_vendor_err(ibv_cq_ex* cq) {
  return current(cq).vendor_err;
}
unsigned read_wc_flags(ibv_cq_ex* cq) {
  return current(cq).wc_flags;
}
uint32_t read_byte_len(ibv_cq_ex* cq) {
  return current(cq).byte_len;
}
/// Returns the immediate data or the invalidated R_Key, which is in host byte order.
__be32 read_imm_data(ibv_cq_ex* cq) {
  return current(cq).imm_data;
}
uint32_t read_qp_num(ibv_cq_ex* cq) {
  return current(cq).qp_num;
}
uint32_t read_src_qp(ibv_cq_ex* cq) {
  return current(cq).src_qp;
}
uint32_t read_slid(ibv_cq_ex* cq) {
  return current(cq).slid;
}
uint8_t read_sl(ibv_cq_ex* cq) {
  return current(cq).sl;
}
uint8_t read_dlid_path_bits(ibv_cq_ex* cq) {
  return current(cq).dlid_path_bits;
}
uint64_t read_completion_ts(ibv_cq_ex* cq) {
  return current(cq).timestamp_ns;
}
uint64_t read_completion_wallclock_ns(ibv_cq_ex* cq) {
  return wall_clock_ns(cq->context, current(cq).timestamp_ns);
}

/// With RoCE there are no VLAN tags that the device removes, no flow tags and no matched tags.
constexpr uint64_t kFields = uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                             IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

}  // namespace

/// Sets the functions that read the fields of a completion. "Only fields that the user requested
/// via wc_flags in ibv_create_cq_ex could be queried": the other functions are null, which exposes
/// a program that did not request a field.
void make_extended(Cq* ours, uint64_t wc_flags) {
  ibv_cq_ex* cq = &ours->verbs.cq_ex;
  cq->start_poll = verb<start_poll>;
  cq->next_poll = verb<next_poll>;
  cq->end_poll = verb<end_poll>;
  cq->read_opcode = read_opcode;
  cq->read_vendor_err = read_vendor_err;
  cq->read_wc_flags = read_wc_flags;
  const auto has = [=](uint64_t flag) { return (wc_flags & flag) != 0; };
  if (has(IBV_WC_EX_WITH_BYTE_LEN)) cq->read_byte_len = read_byte_len;
  if (has(IBV_WC_EX_WITH_IMM)) cq->read_imm_data = read_imm_data;
  if (has(IBV_WC_EX_WITH_QP_NUM)) cq->read_qp_num = read_qp_num;
  if (has(IBV_WC_EX_WITH_SRC_QP)) cq->read_src_qp = read_src_qp;
  if (has(IBV_WC_EX_WITH_SLID)) cq->read_slid = read_slid;
  if (has(IBV_WC_EX_WITH_SL)) cq->read_sl = read_sl;
  if (has(IBV_WC_EX_WITH_DLID_PATH_BITS)) cq->read_dlid_path_bits = read_dlid_path_bits;
  if (has(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)) cq->read_completion_ts = read_completion_ts;
  if (has(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)) {
    cq->read_completion_wallclock_ns = verb<read_completion_wallclock_ns>;
  }
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  constexpr uint32_t kUnderstood = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  const uint32_t flags =
      (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attr->flags : uint32_t{0};
  // IGNORE_OVERRUN is not supported, because the daemon never overwrites a completion that was not
  // polled.
  if ((attr->comp_mask & ~kUnderstood) != 0 || (attr->wc_flags & ~kFields) != 0 ||
      (flags & ~uint32_t{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}) != 0) {
    return fail<ibv_cq_ex>(EOPNOTSUPP);
  }
  ibv_pd* parent_domain = nullptr;
  if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0) {
    parent_domain = attr->parent_domain;
    if (parent_domain == nullptr || parent_domain->context != context ||
        !is_parent_domain(*parent_domain)) {
      return fail<ibv_cq_ex>(EINVAL);
    }
  }
  Cq* cq = make_cq(context, attr->cqe, attr->channel, attr->comp_vector, parent_domain);
  if (cq == nullptr) return nullptr;
  if ((flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0 || is_single_threaded(parent_domain)) {
    cq->lock.leave_out();
  }
  make_extended(cq, attr->wc_flags);
  return &cq->verbs.cq_ex;
}

}  // namespace rocemu::provider
