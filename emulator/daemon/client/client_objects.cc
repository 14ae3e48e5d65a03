#include "emulator/daemon/client/client_objects.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "emulator/daemon/base/descriptors.h"

namespace rocemu::daemon {
namespace {

/// The number of completion channels that a client can have even if few descriptors are left.
constexpr size_t kFewChannels = 16;

bool is_engine_op(abi::Op op) {
  return op >= abi::Op::kQueryDevice && op <= abi::kLastOp;
}

Answer with_fd(const abi::Reply& reply, UniqueFd fd) {
  Answer answer{reply};
  answer.fds.push_back(std::move(fd));
  return answer;
}

}  // namespace

// If the daemon itself refuses a request because memory or descriptors are exhausted, it also
// passes the refusal to the engine, so that recordings show the program's errors.
Answer ClientObjects::execute(const abi::Request& request, std::span<const UniqueFd> fds) {
  if (request.refusal != 0) {
    return is_engine_op(request.op) ? Answer{command(request)} : refusal(EOPNOTSUPP);
  }
  recorded_error_ = 0;
  Answer answer = carry_out(request, fds);
  const int32_t error = answer.reply.error;
  if (error != 0 && error != recorded_error_ && is_engine_op(request.op) && !queues_.ended) {
    abi::Request refused = request;
    refused.refusal = static_cast<uint16_t>(error);
    if (const int32_t said = command(refused).error; said != 0) answer.reply.error = said;
  }
  return answer;
}

Answer ClientObjects::carry_out(const abi::Request& request, std::span<const UniqueFd> fds) {
  switch (request.op) {
    case abi::Op::kOpenSegment:
      return open_segment(request);
    case abi::Op::kCreateChannel:
      return create_channel(request);
    case abi::Op::kCreateCq:
      return create_cq(request);
    case abi::Op::kResizeCq:
      return resize_cq(request);
    case abi::Op::kCreateSrq:
      return create_srq(request);
    case abi::Op::kCreateQp:
      return create_qp(request);
    case abi::Op::kOpenQp:
      return open_qp(request);
    case abi::Op::kDestroyCq:
      return destroy_cq(request, fds);
    case abi::Op::kDestroySrq:
      return destroy_srq(request, fds);
    case abi::Op::kDestroyQp:
      return destroy_qp(request, fds);
    default:
      if (!is_engine_op(request.op)) return refusal(EOPNOTSUPP);
      return {command(request)};
  }
}

Answer ClientObjects::open_segment(const abi::Request& request) {
  const auto file = queues_.arena.file_of(request.body.open_segment.segment);
  if (!file) return refusal(EINVAL);
  UniqueFd copy(fcntl(file->fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return refusal(EMFILE);
  abi::Reply reply{};
  reply.body.open_segment.size = file->size;
  return with_fd(reply, std::move(copy));
}

Answer ClientObjects::create_channel(const abi::Request& request) {
  abi::Reply reply = command(request);
  if (reply.error != 0 || queues_.ended) return {reply};
  ClientEvents::NewChannel channel = events_.open_channel();
  if (!channel.client_end) return refusal(EMFILE);
  // If the request is refused, the client's end of the channel is closed, and this also closes the
  // channel.
  if (events_.channels() > kFewChannels && leaves_few(channel.client_end.get())) {
    tell_of_shortage();
    return refusal(EMFILE);
  }
  reply.body.create_channel.inode = channel.id.value;
  return with_fd(reply, std::move(channel.client_end));
}

Answer ClientObjects::create_cq(const abi::Request& request) {
  const auto& wanted = request.body.create_cq;
  const engine::ChannelId channel{wanted.channel_inode};
  if (channel.value != 0 && !events_.has_channel(channel)) return refusal(EINVAL);
  abi::Reply reply = command(request);
  if (reply.error != 0 || queues_.ended) return {reply};
  auto& made = reply.body.create_cq;
  return complete(reply, abi::Op::kDestroyCq, made.handle, cq_memory_size(made.capacity),
                  [&](Arena::Piece memory) {
                    made.memory = memory.range();
                    queues_.cqs.insert(made.handle,
                                       CompletionQueue(std::move(memory), made.capacity,
                                                       wanted.user_handle, channel));
                  });
}

Answer ClientObjects::resize_cq(const abi::Request& request) {
  CompletionQueue* cq = queues_.cqs.find(request.body.resize_cq.handle);
  if (cq == nullptr) return refusal(ENOENT);
  abi::Reply reply = command(request);
  if (reply.error != 0 || queues_.ended) return {reply};
  auto& made = reply.body.create_cq;
  std::optional<Arena::Piece> memory = queues_.arena.take(cq_memory_size(made.capacity));
  if (!memory) {
    abi::Request back = request;
    back.body.resize_cq.capacity = cq->capacity();
    command(back);
    return refusal(ENOMEM);
  }
  made.memory = memory->range();
  if (!cq->move_to(std::move(*memory), made.capacity)) {
    return {.violation = "an impossible consumer index of a CQ"};
  }
  return {reply};
}

Answer ClientObjects::create_srq(const abi::Request& request) {
  abi::Reply reply = command(request);
  if (reply.error != 0 || queues_.ended) return {reply};
  auto& made = reply.body.create_srq;
  const SrqMemoryPlan plan = plan_srq_memory(made.max_wr, made.max_sge);
  return complete(reply, abi::Op::kDestroySrq, made.handle, plan.size, [&](Arena::Piece memory) {
    made.recv = plan.recv;
    made.memory = memory.range();
    SharedReceiveQueue srq;
    srq.recv = {memory.data() + plan.recv.offset, plan.recv.slots, plan.recv.stride, 0};
    srq.user_handle = request.body.create_srq.user_handle;
    srq.memory = std::move(memory);
    queues_.srqs.insert(made.handle, std::move(srq));
  });
}

Answer ClientObjects::create_qp(const abi::Request& request) {
  abi::Reply reply = command(request);
  if (reply.error != 0 || queues_.ended) return {reply};
  auto& made = reply.body.create_qp;
  const auto& wanted = request.body.create_qp;
  const QpMemoryPlan plan =
      plan_qp_memory(without_missing_queues(made.cap, wanted.type, wanted.srq != 0));
  return complete(reply, abi::Op::kDestroyQp, made.qpn, plan.size, [&](Arena::Piece memory) {
    made.send = plan.send;
    made.recv = plan.recv;
    made.memory = memory.range();
    const std::byte* base = memory.data();
    QueuePair qp;
    qp.send = {base + plan.send.offset, plan.send.slots, plan.send.stride, 0};
    qp.recv = {base + plan.recv.offset, plan.recv.slots, plan.recv.stride, 0};
    qp.user_handles = {wanted.user_handle};
    qp.memory = std::move(memory);
    queues_.qps.insert(made.qpn, std::move(qp));
  });
}

Answer ClientObjects::open_qp(const abi::Request& request) {
  const abi::Reply reply = command(request);
  if (reply.error != 0 || queues_.ended) return {reply};
  const uint32_t qpn = reply.body.open_qp.qpn;
  QueuePair* known = queues_.qps.find(qpn);
  QueuePair& qp = known != nullptr ? *known : queues_.qps.insert(qpn, {});
  qp.user_handles.push_back(request.body.open_qp.user_handle);
  return {reply};
}

// An object can be destroyed only by the context that has its memory. If another context could, the
// owner would keep a queue that does not exist any more.

Answer ClientObjects::destroy_cq(const abi::Request& request, std::span<const UniqueFd> fds) {
  const CompletionQueue* cq = queues_.cqs.find(request.body.object.handle);
  if (cq == nullptr) return refusal(ENOENT);
  abi::Reply reply = command(request);
  if (reply.error != 0) return {reply};
  reply.body.destroyed = {
      .completion_events = events_.forget_completions(cq->channel(), cq->user_handle(), fds),
      .async_events = events_.forget_async(cq->user_handle(), fds)};
  queues_.cqs.erase(request.body.object.handle);
  return {reply};
}

Answer ClientObjects::destroy_srq(const abi::Request& request, std::span<const UniqueFd> fds) {
  const SharedReceiveQueue* srq = queues_.srqs.find(request.body.object.handle);
  if (srq == nullptr) return refusal(ENOENT);
  abi::Reply reply = command(request);
  if (reply.error != 0) return {reply};
  reply.body.destroyed = {.completion_events = 0,
                          .async_events = events_.forget_async(srq->user_handle, fds)};
  queues_.srqs.erase(request.body.object.handle);
  return {reply};
}

Answer ClientObjects::destroy_qp(const abi::Request& request, std::span<const UniqueFd> fds) {
  QueuePair* qp = queues_.qps.find(request.body.object.handle);
  if (qp == nullptr) return refusal(ENOENT);
  std::vector<uint64_t>& references = qp->user_handles;
  const auto reference =
      std::find(references.begin(), references.end(), request.body.object.user_handle);
  if (reference == references.end()) return refusal(ENOENT);
  abi::Reply reply = command(request);
  if (reply.error != 0) return {reply};
  reply.body.destroyed = {.completion_events = 0,
                          .async_events = events_.forget_async(*reference, fds)};
  references.erase(reference);
  if (references.empty()) queues_.qps.erase(request.body.object.handle);
  return {reply};
}

template <class Enter>
Answer ClientObjects::complete(const abi::Reply& reply, abi::Op destroy, uint32_t handle,
                               uint64_t size, Enter enter) {
  if (std::optional<Arena::Piece> memory = queues_.arena.take(size)) {
    try {
      enter(std::move(*memory));
      return {reply};
    } catch (const std::bad_alloc&) {
    }
  }
  undo(destroy, handle);
  return refusal(ENOMEM);
}

void ClientObjects::undo(abi::Op destroy, uint32_t handle) {
  abi::Request request{};
  request.magic = abi::kMagic;
  request.version = abi::kVersion;
  request.op = destroy;
  request.body.object.handle = handle;
  command(request);
}

}  // namespace rocemu::daemon
