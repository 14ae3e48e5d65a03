#include "emulator/engine/verbs/cq_commands.h"

#include <cerrno>

#include "emulator/engine/objects/owned.h"

namespace rocemu::engine {

int create_cq(CommandContext& context, ClientId client, const abi::Request::Body& in,
              abi::Reply::Body& out) {
  const auto& arguments = in.create_cq;
  if (arguments.capacity == 0 || arguments.capacity > kMaxCqe) return EINVAL;
  if (arguments.comp_vector >= kCompVectors) return EINVAL;
  CompletionQueue* cq = context.objects.cqs.create(client);
  if (cq == nullptr) return ENOMEM;
  cq->channel = {arguments.channel_inode};
  cq->user_handle = arguments.user_handle;
  cq->capacity = arguments.capacity;
  out.create_cq.handle = cq->id.value;
  out.create_cq.capacity = cq->capacity;
  return 0;
}

int resize_cq(CommandContext& context, ClientId client, const abi::Request::Body& in,
              abi::Reply::Body& out) {
  const auto& arguments = in.resize_cq;
  CompletionQueue* cq = owned(context.objects.cqs, arguments.handle, client);
  if (cq == nullptr) return ENOENT;
  if (cq->failed) return EINVAL;
  if (arguments.capacity == 0 || arguments.capacity > kMaxCqe) return EINVAL;
  if (!cq->consume(context.memory.completions_taken(client, cq->id))) {
    context.step.emit(ClientViolation{client, "took more completions than there were"});
    return EINVAL;
  }
  // ibv_resize_cq(3): "cqe must be at least the number of unpolled entries in the CQ".
  if (cq->waiting() > arguments.capacity) return EINVAL;
  cq->capacity = arguments.capacity;
  out.create_cq.handle = cq->id.value;
  out.create_cq.capacity = cq->capacity;
  return 0;
}

int modify_cq(CommandContext& context, ClientId client, const abi::Request::Body& in) {
  const auto& arguments = in.modify_cq;
  CompletionQueue* cq = owned(context.objects.cqs, arguments.handle, client);
  if (cq == nullptr) return ENOENT;
  if (arguments.count > kMaxCqModeration || arguments.period > kMaxCqModeration) return EINVAL;
  context.completions.moderate(
      *cq, {.count = arguments.count, .period = std::chrono::microseconds(arguments.period)});
  return 0;
}

int destroy_cq(CommandContext& context, ClientId client, uint32_t handle) {
  const CompletionQueue* cq = owned(context.objects.cqs, handle, client);
  if (cq == nullptr) return ENOENT;
  if (cq->users != 0) return EBUSY;
  context.objects.cqs.destroy(cq->id);
  return 0;
}

}  // namespace rocemu::engine
