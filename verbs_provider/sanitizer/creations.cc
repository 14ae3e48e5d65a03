#include "verbs_provider/sanitizer/creations.h"

#include <cerrno>
#include <string>

#include "emulator/sanitizer/words.h"
#include "verbs_provider/sanitizer/compilers/initialized_memory.h"
#include "verbs_provider/sanitizer/limits.h"
#include "verbs_provider/sanitizer/mapping_changes.h"
#include "verbs_provider/sanitizer/program.h"
#include "verbs_provider/sanitizer/wrapped_verbs.h"
#include "verbs_provider/structs/cq.h"

namespace rocemu::sanitizer {
namespace {

using provider::Guard;

/// The scope in which a wrapper works after its verb. It preserves the program's errno, and one
/// thread at a time is in such a scope. Null if there is no Program.
class Seen {
 public:
  explicit Seen(Program* program) : program_(program) {
    if (program_ != nullptr) program_->lock.lock();
  }
  ~Seen() {
    if (program_ != nullptr) program_->lock.unlock();
    errno = errno_;
  }
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;

  explicit operator bool() const { return program_ != nullptr; }
  Program& operator*() const { return *program_; }
  Program* operator->() const { return program_; }

 private:
  const int errno_ = errno;
  Program* program_;
};

struct Made {
  ObjectKind kind;
  const void* handle;
  ibv_context* context;
  uint32_t number;
  const ibv_pd* pd = nullptr;
};

template <class T>
std::unique_ptr<T> describe(Program& program, const Made& made, const char* call) {
  auto object = std::make_unique<T>();
  object->kind = made.kind;
  object->handle = made.handle;
  object->context = made.context;
  object->number = made.number;
  object->pd = made.pd;
  object->created = program.here(call, made.context);
  program.log().write_object(*object, made.context->device->name);
  return object;
}

/// Reports the limits that a call exceeded, after a verb that created nothing.
void tell_of_limits(ibv_context* context, const char* call, const std::vector<Asked>& asked) {
  const int error = errno;
  const std::vector<Exceeded> exceeded = exceeded_limits(context, asked);
  errno = error;
  if (exceeded.empty()) return;
  const Seen program(Program::get());
  if (!program) return;
  for (const Exceeded& one : exceeded)
    program->sanitizer().tell(BeyondLimit{one.attribute, one.asked, one.allowed,
                                          name_with_profile(context),
                                          program->here(call, context)});
}

// ---- Protection domains, regions, windows, address handles ----

ibv_pd* add_pd(ibv_pd* pd, ibv_context* context, const char* call) {
  if (pd == nullptr) return nullptr;
  if (const Seen program(Program::get()); program)
    program->objects().pds.add(
        describe<Object>(*program, {ObjectKind::kPd, pd, context, pd->handle}, call));
  return pd;
}

ibv_pd* alloc_pd(ibv_context* context) {
  return add_pd(original.alloc_pd(context), context, "ibv_alloc_pd");
}
ibv_pd* import_pd(ibv_context* context, uint32_t handle) {
  return add_pd(original.import_pd(context, handle), context, "ibv_import_pd");
}
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attr) {
  return add_pd(original.alloc_parent_domain(context, attr), context, "ibv_alloc_parent_domain");
}

void set_access(Mr& region, unsigned access) {
  constexpr unsigned kRemote =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  region.is_writable = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
  region.is_remote = (access & kRemote) != 0;
}

/// The bytes that SGEs address in a region: memory of the program, or memory that is not known.
struct Bytes {
  uint64_t address = 0, length = 0;
  bool is_known = false;
  uint64_t memory = 0;  // of the process; 0 if a NIC may fault it in
};

/// Marks memory as initialized if peers can write it, because the program does not learn of their
/// WRITEs.
void mark_what_peers_write(const Mr& region, unsigned access) {
  constexpr unsigned kWrites =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
  if ((access & kWrites) != 0 && region.memory != 0)
    mark_initialized(reinterpret_cast<const void*>(region.memory), region.length);
}

void set_bytes(Mr& region, const Bytes& bytes) {
  region.address = bytes.address;
  region.length = bytes.length;
  region.has_addresses = bytes.is_known;
  region.memory = bytes.memory;
  region.changed.clear();
}

ibv_mr* add_mr(ibv_mr* mr, ibv_pd* pd, const Bytes& bytes, unsigned access, const char* call) {
  if (mr == nullptr) return nullptr;
  const Seen program(Program::get());
  if (!program) return mr;
  take_mapping_changes(*program);  // earlier changes do not concern the new region
  auto region = describe<Mr>(*program, {ObjectKind::kMr, mr, pd->context, mr->handle, pd}, call);
  region->lkey = mr->lkey;
  region->rkey = mr->rkey;
  set_bytes(*region, bytes);
  set_access(*region, access);
  mark_what_peers_write(*region, access);
  Mr& added = program->objects().regions.add(std::move(region));
  program->objects().regions_by_lkey[added.lkey] = &added;
  return mr;
}

/// Returns the bytes of a region. SGEs address the bytes of a zero-based region by offsets.
Bytes bytes_of(const void* memory, uint64_t iova, size_t length, int access) {
  const bool is_on_demand = (access & IBV_ACCESS_ON_DEMAND) != 0;
  return {(access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : iova, length, true,
          is_on_demand ? 0 : reinterpret_cast<uint64_t>(memory)};
}

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) {
  return add_mr(original.reg_mr(pd, address, length, iova, access), pd,
                bytes_of(address, iova, length, access), static_cast<unsigned>(access),
                "ibv_reg_mr");
}
ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, uint64_t offset, size_t length, unsigned access) {
  return add_mr(original.reg_dm_mr(pd, dm, offset, length, access), pd, {}, access,
                "ibv_reg_dm_mr");
}
ibv_mr* reg_dmabuf_mr(ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                      int access) {
  return add_mr(original.reg_dmabuf_mr(pd, offset, length, iova, fd, access), pd, {},
                static_cast<unsigned>(access), "ibv_reg_dmabuf_mr");
}
ibv_mr* alloc_null_mr(ibv_pd* pd) {
  return add_mr(original.alloc_null_mr(pd), pd, {}, IBV_ACCESS_LOCAL_WRITE, "ibv_alloc_null_mr");
}

int rereg_mr(provider::VerbsMr* verbs, int flags, ibv_pd* pd, void* address, size_t length,
             int access) {
  const int error = original.rereg_mr(verbs, flags, pd, address, length, access);
  if (error != 0) return error;
  const Seen program(Program::get());
  Mr* const region = program ? program->objects().regions.find(&verbs->mr) : nullptr;
  if (region == nullptr) return error;
  take_mapping_changes(*program);
  region->number = verbs->mr.handle;
  program->objects().regions_by_lkey.erase(region->lkey);
  program->objects().regions_by_lkey[verbs->mr.lkey] = region;
  region->lkey = verbs->mr.lkey;
  region->rkey = verbs->mr.rkey;
  if ((flags & IBV_REREG_MR_CHANGE_PD) != 0) region->pd = pd;
  if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) set_access(*region, static_cast<unsigned>(access));
  if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0)
    set_bytes(*region,
              bytes_of(address, reinterpret_cast<uint64_t>(address), length, verbs->access));
  mark_what_peers_write(*region, static_cast<unsigned>(verbs->access));
  return error;
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  ibv_mw* const mw = original.alloc_mw(pd, type);
  if (mw == nullptr) return nullptr;
  if (const Seen program(Program::get()); program)
    program->objects().windows.add(describe<Object>(
        *program, {ObjectKind::kMw, mw, pd->context, mw->handle, pd}, "ibv_alloc_mw"));
  return mw;
}

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  ibv_ah* const ah = original.create_ah(pd, attr);
  if (ah == nullptr) return nullptr;
  if (const Seen program(Program::get()); program)
    program->objects().address_handles.add(describe<Object>(
        *program, {ObjectKind::kAh, ah, pd->context, ah->handle, pd}, "ibv_create_ah"));
  return ah;
}

// ---- CQs and SRQs ----

void add_cq(ibv_cq* cq, ibv_context* context, const ibv_comp_channel* channel, const char* call) {
  const Seen program(Program::get());
  if (!program) return;
  auto queue = describe<Cq>(*program, {ObjectKind::kCq, cq, context, cq->handle}, call);
  queue->capacity = static_cast<uint32_t>(cq->cqe);
  queue->channel = channel;
  program->objects().cqs.add(std::move(queue));
}

ibv_cq* create_cq(ibv_context* context, int capacity, ibv_comp_channel* channel, int vector) {
  ibv_cq* const cq = original.create_cq(context, capacity, channel, vector);
  if (cq != nullptr) {
    add_cq(cq, context, channel, "ibv_create_cq");
  } else if (capacity > 0) {
    tell_of_limits(context, "ibv_create_cq",
                   {{"cqe", static_cast<uint64_t>(capacity), Limit::kCqe}});
  }
  return cq;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  ibv_cq_ex* const cq = original.create_cq_ex(context, attr);
  if (cq != nullptr) {
    add_cq(ibv_cq_ex_to_cq(cq), context, attr->channel, "ibv_create_cq_ex");
  } else {
    tell_of_limits(context, "ibv_create_cq_ex", {{"cqe", attr->cqe, Limit::kCqe}});
  }
  return cq;
}

int resize_cq(ibv_cq* base, int capacity) {
  const int error = original.resize_cq(base, capacity);
  if (error != 0) {
    if (capacity > 0)
      tell_of_limits(base->context, "ibv_resize_cq",
                     {{"cqe", static_cast<uint64_t>(capacity), Limit::kCqe}});
    return error;
  }
  const Seen program(Program::get());
  Cq* const cq = program ? program->objects().cqs.find(base) : nullptr;
  if (cq != nullptr) cq->capacity = static_cast<uint32_t>(base->cqe);
  return error;
}

bool can_receive(const Qp& qp) {
  return qp.state >= abi::QpState::kRtr && qp.state != abi::QpState::kErr;
}

/// Returns whether the CQ can get a completion without an action of the program.
bool can_complete(const Objects& objects, const Cq& cq) {
  bool can = false;
  objects.srqs.for_each([&](const Srq& srq) {
    if (srq.receives.requests.empty()) return;
    if (srq.cq == cq.handle) can = true;  // XRC: a remote QP takes the receive
    objects.qps.for_each([&](const Qp& qp) {
      can |= qp.srq == srq.handle && qp.receives_from == &cq && can_receive(qp);
    });
  });
  objects.qps.for_each([&](const Qp& qp) {
    if (qp.sends_to == &cq)
      qp.sends.requests.for_each([&](const Request& request) { can |= request.is_signaled; });
    if (qp.receives_from == &cq && can_receive(qp) && !qp.receives.requests.empty()) can = true;
  });
  return can;
}

int req_notify_cq(ibv_cq* base, int solicited_only) {
  auto* const own = reinterpret_cast<provider::Cq*>(base);
  own->ring_lock.lock();
  const uint32_t produced = own->ring->producer.load(std::memory_order_acquire);
  own->ring_lock.unlock();
  const int error = original.req_notify_cq(base, solicited_only);
  if (error != 0) return error;
  const Seen program(Program::get());
  Cq* const cq = program ? program->objects().cqs.find(base) : nullptr;
  if (cq == nullptr) return error;
  // A further request before the next completion is part of the previous one: both cause one event.
  const bool is_new = !cq->is_armed || cq->produced_at_arm != produced;
  cq->is_armed = true;
  if (is_new) ++cq->arms;
  cq->armed = program->here("ibv_req_notify_cq", base->context);
  cq->polls_at_arm = cq->polls;
  cq->produced_at_arm = produced;
  cq->could_complete_at_arm = can_complete(program->objects(), *cq);
  cq->is_for_solicited = solicited_only != 0;
  program->sanitizer().tell(Arm{*cq});
  return error;
}

void add_srq(ibv_srq* base, ibv_pd* pd, const ibv_srq_attr& attr, const ibv_cq* cq,
             const char* call) {
  const Seen program(Program::get());
  if (!program) return;
  auto srq = describe<Srq>(*program, {ObjectKind::kSrq, base, pd->context, base->handle, pd}, call);
  srq->cq = cq;
  srq->receives.kind = QueueKind::kShared;
  srq->receives.number = srq->number;
  srq->receives.capacity = attr.max_wr;
  srq->receives.max_sge = attr.max_sge;
  const Srq& added = program->objects().srqs.add(std::move(srq));
  program->objects().srqs_by_number[{added.context, added.number}] = const_cast<Srq*>(&added);
}

std::vector<Asked> asked_of(const ibv_srq_attr& attr) {
  return {{"attr.max_wr", attr.max_wr, Limit::kSrqWr},
          {"attr.max_sge", attr.max_sge, Limit::kSrqSge}};
}

ibv_srq* create_srq(ibv_pd* pd, ibv_srq_init_attr* attr) {
  const std::vector<Asked> asked = asked_of(attr->attr);
  ibv_srq* const srq = original.create_srq(pd, attr);
  if (srq != nullptr) {
    add_srq(srq, pd, attr->attr, nullptr, "ibv_create_srq");
  } else {
    tell_of_limits(pd->context, "ibv_create_srq", asked);
  }
  return srq;
}

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attr) {
  const std::vector<Asked> asked = asked_of(attr->attr);
  ibv_srq* const srq = original.create_srq_ex(context, attr);
  if (srq != nullptr) {
    const bool has_cq = (attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) != 0;
    add_srq(srq, attr->pd, attr->attr, has_cq ? attr->cq : nullptr, "ibv_create_srq_ex");
  } else {
    tell_of_limits(context, "ibv_create_srq_ex", asked);
  }
  return srq;
}

// ---- QPs ----

void add_qp(ibv_qp* base, ibv_context* context, const ibv_qp_cap& cap, bool signals_all,
            const char* call) {
  const Seen program(Program::get());
  if (!program) return;
  Objects& objects = program->objects();
  auto qp = describe<Qp>(*program, {ObjectKind::kQp, base, context, base->qp_num, base->pd}, call);
  qp->type = static_cast<abi::QpType>(base->qp_type);
  qp->state = static_cast<abi::QpState>(base->state);
  qp->signals_all = signals_all;
  qp->sends_to = objects.cqs.find(base->send_cq);
  qp->receives_from = objects.cqs.find(base->recv_cq);
  qp->srq = base->srq;
  for (Queue* queue : {&qp->sends, &qp->receives}) {
    queue->qp = qp.get();
    queue->number = qp->number;
  }
  qp->sends.kind = QueueKind::kSend;
  qp->sends.capacity = cap.max_send_wr;
  qp->sends.max_sge = cap.max_send_sge;
  qp->sends.max_inline = cap.max_inline_data;
  qp->receives.kind = QueueKind::kReceive;
  qp->receives.capacity = cap.max_recv_wr;
  qp->receives.max_sge = cap.max_recv_sge;
  Qp& added = objects.qps.add(std::move(qp));
  objects.qps_by_number[{added.context, added.number}] = &added;
}

std::vector<Asked> asked_of(const ibv_qp_cap& cap) {
  return {{"cap.max_send_wr", cap.max_send_wr, Limit::kQpWr},
          {"cap.max_recv_wr", cap.max_recv_wr, Limit::kQpWr},
          {"cap.max_send_sge", cap.max_send_sge, Limit::kSge},
          {"cap.max_recv_sge", cap.max_recv_sge, Limit::kSge},
          {"cap.max_inline_data", cap.max_inline_data, Limit::kInline}};
}

ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) {
  const std::vector<Asked> asked = asked_of(attr->cap);
  ibv_qp* const qp = original.create_qp(pd, attr);
  if (qp != nullptr) {
    add_qp(qp, pd->context, attr->cap, attr->sq_sig_all != 0, "ibv_create_qp");
  } else {
    tell_of_limits(pd->context, "ibv_create_qp", asked);
  }
  return qp;
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  const std::vector<Asked> asked = asked_of(attr->cap);
  ibv_qp* const qp = original.create_qp_ex(context, attr);
  if (qp != nullptr) {
    add_qp(qp, context, attr->cap, attr->sq_sig_all != 0, "ibv_create_qp_ex");
  } else {
    tell_of_limits(context, "ibv_create_qp_ex", asked);
  }
  return qp;
}

ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) {
  ibv_qp* const qp = original.open_qp(context, attr);
  if (qp != nullptr) add_qp(qp, context, {}, false, "ibv_open_qp");
  return qp;
}

/// Returns whether the transition exists. RESET and ERR can be entered from each state, and few
/// other transitions exist (IBTA vol 1, 10.3.1).
bool exists(ibv_qp_state from, ibv_qp_state to) {
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return true;
  switch (from) {
    case IBV_QPS_RESET:
      return to == IBV_QPS_INIT;
    case IBV_QPS_INIT:
      return to == IBV_QPS_INIT || to == IBV_QPS_RTR;
    case IBV_QPS_RTR:
      return to == IBV_QPS_RTS;
    case IBV_QPS_RTS:
    case IBV_QPS_SQD:
      return to == IBV_QPS_RTS || to == IBV_QPS_SQD;
    case IBV_QPS_SQE:
      return to == IBV_QPS_RTS;
    default:
      return false;
  }
}

void tell_of_refused_change(ibv_qp* base, const ibv_qp_attr& attr, int mask) {
  std::vector<Asked> asked;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0)
    asked.push_back({"max_rd_atomic", attr.max_rd_atomic, Limit::kInitiatedReads});
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0)
    asked.push_back({"max_dest_rd_atomic", attr.max_dest_rd_atomic, Limit::kReads});
  if (!asked.empty()) tell_of_limits(base->context, "ibv_modify_qp", asked);
  if ((mask & IBV_QP_STATE) == 0) return;
  const Seen program(Program::get());
  const Qp* const qp = program ? program->objects().qps.find(base) : nullptr;
  if (qp == nullptr || exists(base->state, attr.qp_state)) return;
  program->sanitizer().tell(
      WrongState{"asked " + qp->title() + " to go from " +
                     std::string(abi::name_of(static_cast<abi::QpState>(base->state))) + " to " +
                     std::string(abi::name_of(static_cast<abi::QpState>(attr.qp_state))) +
                     ", a transition that does not exist",
                 qp->created, program->here("ibv_modify_qp", base->context)});
}

int modify_qp(ibv_qp* base, ibv_qp_attr* attr, int mask) {
  const int error = original.modify_qp(base, attr, mask);
  if (error == EINVAL) tell_of_refused_change(base, *attr, mask);
  if (error != 0 || (mask & IBV_QP_STATE) == 0) return error;
  const Seen program(Program::get());
  Qp* const qp = program ? program->objects().qps.find(base) : nullptr;
  if (qp == nullptr) return error;
  if ((mask & IBV_QP_DEST_QPN) != 0) qp->peer = attr->dest_qp_num;
  take_mapping_changes(*program);
  const auto to = static_cast<abi::QpState>(attr->qp_state);
  program->sanitizer().tell(
      StateChange{*qp, qp->state, to, program->here("ibv_modify_qp", base->context)});
  qp->enter(to);
  return error;
}

}  // namespace

void wrap_creations(provider::ContextOps& ops) {
  ops.alloc_mw = alloc_mw;
  ops.alloc_null_mr = alloc_null_mr;
  ops.alloc_parent_domain = alloc_parent_domain;
  ops.alloc_pd = alloc_pd;
  ops.create_ah = create_ah;
  ops.create_cq = create_cq;
  ops.create_cq_ex = create_cq_ex;
  ops.create_qp = create_qp;
  ops.create_qp_ex = create_qp_ex;
  ops.create_srq = create_srq;
  ops.create_srq_ex = create_srq_ex;
  ops.import_pd = import_pd;
  ops.modify_qp = modify_qp;
  ops.open_qp = open_qp;
  ops.req_notify_cq = req_notify_cq;
  ops.reg_dm_mr = reg_dm_mr;
  ops.reg_dmabuf_mr = reg_dmabuf_mr;
  ops.reg_mr = reg_mr;
  ops.rereg_mr = rereg_mr;
  ops.resize_cq = resize_cq;
}

}  // namespace rocemu::sanitizer
