// ibv_create_cq(3), ibv_destroy_cq(3), ibv_resize_cq(3), ibv_modify_cq(3), ibv_poll_cq(3) and
// ibv_req_notify_cq(3).
#include "verbs_provider/structs/cq.h"

#include <bit>
#include <cerrno>
#include <optional>

#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/context/events.h"
#include "verbs_provider/context/sanitizer_hooks.h"
#include "verbs_provider/datapath/take_completion.h"
#include "verbs_provider/hooks/note_call.h"
#include "verbs_provider/hooks/provider_calls.h"
#include "verbs_provider/objects/make_cq.h"
#include "verbs_provider/polling/empty_poll.h"
#include "verbs_provider/structs/pd.h"
#include "verbs_provider/system/system_call.h"

namespace rocemu::provider {
namespace {

/// Fails a poll with `error` in errno: ibv_poll_cq(3) itself can only return a negative number.
int fail_poll(int error) {
  errno = error;
  return -1;
}

/// The ring of a CQ whose real ring cannot be accessed
constinit abi::CqRing lost_ring{
    .producer = 0, .error = 1, .waiting = 0, .wake_at = 0, .watched = 0, .consumer = 0};

int channel_inode(const ibv_comp_channel& channel, uint64_t* inode) {
  struct stat status;
  if (system_call(SYS_fstat, channel.fd, &status) != 0) return errno;
  *inode = status.st_ino;
  return 0;
}

void convert(const abi::Cqe& from, ibv_wc* to) {
  to->wr_id = from.wr_id;
  to->status = static_cast<ibv_wc_status>(from.status);
  to->opcode = static_cast<ibv_wc_opcode>(from.opcode);
  to->vendor_err = from.vendor_err;
  to->byte_len = from.byte_len;
  to->imm_data = from.imm_data;
  to->qp_num = from.qp_num;
  to->src_qp = from.src_qp;
  to->wc_flags = from.wc_flags;
  to->pkey_index = from.pkey_index;
  to->slid = from.slid;
  to->sl = from.sl;
  to->dlid_path_bits = from.dlid_path_bits;
}

/// Destroys the CQ. The daemon gets the channels, from which it removes the CQ's unread events.
int call_destroy_cq(ibv_context* context, uint32_t handle, const ibv_comp_channel* channel,
                    abi::Reply* reply) {
  int fds[2];
  int count = 0;
  if (channel != nullptr) fds[count++] = channel->fd;
  fds[count++] = context->async_fd;
  return call_object(context, abi::Op::kDestroyCq, handle, reply, fds, count);
}

/// Returns whether the memory contains a ring for `capacity` completions.
bool holds_ring(const SharedPiece& memory, uint32_t capacity) {
  if (capacity == 0 || capacity > (1u << 31)) return false;
  return memory.size() >=
         sizeof(abi::CqRing) + uint64_t{std::bit_ceil(capacity)} * sizeof(abi::Cqe);
}

void open_ring(Cq* cq, const SharedPiece& memory, uint32_t capacity) {
  cq->ring = reinterpret_cast<abi::CqRing*>(memory.at(0));
  cq->ring_mask = std::bit_ceil(capacity) - 1;
  cq->verbs.cq.cqe = static_cast<int>(capacity);
}

}  // namespace

Cq* make_cq(ibv_context* context, uint32_t capacity, const ibv_comp_channel* channel,
            uint32_t comp_vector, ibv_pd* parent_domain) {
  if (capacity < 1 || comp_vector >= static_cast<uint32_t>(context->num_comp_vectors)) {
    return fail<Cq>(EINVAL);
  }
  auto* cq = make_in<Cq>(parent_domain, Resource::kCq);
  if (cq == nullptr) return nullptr;
  ibv_cq& base = cq->verbs.cq;
  abi::Request request{};
  request.op = abi::Op::kCreateCq;
  request.body.create_cq.user_handle = reinterpret_cast<uint64_t>(&base);
  request.body.create_cq.capacity = capacity;
  request.body.create_cq.comp_vector = comp_vector;
  int error =
      channel == nullptr ? 0 : channel_inode(*channel, &request.body.create_cq.channel_inode);
  abi::Reply reply{};
  const auto& created = reply.body.create_cq;
  SharedPiece memory;
  if (error == 0) error = call_for_memory(context, request, &reply, created.memory, &memory);
  if (error == 0 && !holds_ring(memory, created.capacity)) error = EIO;
  if (error == 0) {
    open_ring(cq, memory, created.capacity);
    base.handle = created.handle;
    cq->parent_domain = parent_domain;
    hold(parent_domain);
    return cq;
  }
  if (is_success(reply)) {
    abi::Reply ignored;
    call_destroy_cq(context, created.handle, channel, &ignored);
  }
  dispose_in(cq, Resource::kCq);
  return fail<Cq>(error);
}

ibv_cq* create_cq(ibv_context* context, int capacity, ibv_comp_channel* channel, int comp_vector) {
  if (capacity < 1 || comp_vector < 0) return fail<ibv_cq>(EINVAL);
  Cq* cq = make_cq(context, static_cast<uint32_t>(capacity), channel,
                   static_cast<uint32_t>(comp_vector), nullptr);
  return cq == nullptr ? nullptr : &cq->verbs.cq;
}

int destroy_cq(ibv_cq* base) {
  abi::Reply reply;
  const int error = call_destroy_cq(base->context, base->handle, base->channel, &reply);
  if (error != 0 && !is_gone_with_its_device(error)) return error;
  if (error == 0) {
    wait_for_acknowledgements(
        &base->mutex, &base->cond, "ibv_destroy_cq", "CQ", base->handle, base, [&] {
          const auto& received = reply.body.destroyed;
          return Unacknowledged{
              still_unacknowledged(received.completion_events, base->comp_events_completed),
              still_unacknowledged(received.async_events, base->async_events_completed)};
        });
  }
  Cq* cq = ours<Cq>(base);
  ibv_pd* parent_domain = cq->parent_domain;
  dispose_in(cq, Resource::kCq);
  release(parent_domain);
  return 0;
}

int resize_cq(ibv_cq* base, int capacity) {
  if (capacity < 1) return EINVAL;
  Cq* cq = ours<Cq>(base);
  abi::Request request{};
  request.op = abi::Op::kResizeCq;
  request.body.resize_cq.handle = base->handle;
  request.body.resize_cq.capacity = static_cast<uint32_t>(capacity);
  abi::Reply reply{};
  const auto& resized = reply.body.create_cq;
  SharedPiece memory;
  // No thread may take completions from the old memory once the daemon has moved them.
  const Guard guard(cq->lock);
  const Guard ring_guard(cq->ring_lock);
  int error = call_for_memory(base->context, request, &reply, resized.memory, &memory);
  if (error == 0 && !holds_ring(memory, resized.capacity)) error = EIO;
  if (error == 0) {
    open_ring(cq, memory, resized.capacity);
  } else if (is_success(reply)) {
    // The new ring cannot be accessed, and the old one can already belong to another CQ. Polling
    // must therefore fail, and not only find nothing.
    cq->ring = &lost_ring;
  }
  return error;
}

int modify_cq(ibv_cq* base, ibv_modify_cq_attr* attr) {
  if ((attr->attr_mask & ~uint32_t{IBV_CQ_ATTR_MODERATE}) != 0) return EINVAL;
  if (attr->attr_mask == 0) return 0;
  abi::Request request{};
  request.op = abi::Op::kModifyCq;
  request.body.modify_cq.handle = base->handle;
  request.body.modify_cq.count = attr->moderate.cq_count;
  request.body.modify_cq.period = attr->moderate.cq_period;
  abi::Reply reply;
  return call(base->context, request, &reply);
}

int poll_cq(ibv_cq* base, int num_entries, ibv_wc* wc) {
  const int error = is_of_this_process(base->context)
                        ? ask(base->context, abi::Op::kPollCq, base->handle)
                        : EPERM;
  if (error != 0) return fail_poll(error);
  if (sanitizer() != nullptr) [[unlikely]]
    sanitizer()->polls(base);
  Cq* cq = ours<Cq>(base);
  std::optional<EmptyPoll> empty;
  std::optional<int> taken;
  {
    const Guard guard(cq->lock);
    if (!cq->overran()) {
      const uint64_t first = cq->consumed;
      note_poll(cq);
      const uint64_t produced = cq->produced();
      int count = 0;
      abi::Cqe cqe;
      WritablePage known;
      while (count < num_entries && take(*cq, produced, &cqe, known)) convert(cqe, &wc[count++]);
      if (cq->consumed != first) {
        cq->empty_polls = 0;
        note_completion(cq);
        taken = count;
      } else {
        empty.emplace(cq);
      }
    }
  }
  if (taken) {
    turns::after_call("ibv_poll_cq");
    return *taken;
  }
  if (!empty) {  // a program may continue to poll and find nothing: on a virtual clock others go
                 // first
    context_of(base->context)->parts.doorbells.wait_for_round(cq);
    return fail_poll(EIO);
  }
  return empty->wait(base->context) ? 0 : fail_poll(EIO);
}

int req_notify_cq(ibv_cq* base, int solicited_only) {
  if (const int error = ask(base->context, abi::Op::kReqNotifyCq, base->handle); error != 0) {
    return error;
  }
  Cq* cq = ours<Cq>(base);
  // The lock is held until the doorbell is rung, so that requests of several threads arrive in the
  // order of the completions that the threads saw.
  const Guard guard(cq->ring_lock);
  // A CQ that overran gets no further completions, so there is nothing to notify the program of.
  if (cq->overran()) return EIO;
  cq->notifies.store(true, std::memory_order_relaxed);
  // Completions that the application could have polled before the request cause no event (rings.h).
  const uint64_t seen = cq->ring->producer.load(std::memory_order_acquire);
  note_call(abi::Op::kReqNotifyCq);
  return context_of(base->context)
      ->parts.doorbells.ring(abi::DoorbellKind::kCqArm, base->handle,
                             seen | (solicited_only != 0 ? abi::kCqArmSolicited : 0));
}

}  // namespace rocemu::provider
