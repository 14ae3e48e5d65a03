// ibv_alloc_pd(3) and ibv_dealloc_pd(3).
#include "verbs_provider/context.h"
#include "verbs_provider/objects.h"
#include "verbs_provider/verbs.h"

namespace rocemu::provider {

ibv_pd* alloc_pd(ibv_context* context) {
  auto* pd = make<ibv_pd>();
  if (pd == nullptr) return nullptr;
  abi::Request request{};
  request.op = abi::Op::kAllocPd;
  abi::Reply reply;
  if (const int error = call(context, request, &reply); error != 0) {
    dispose(pd);
    return fail<ibv_pd>(error);
  }
  pd->handle = reply.body.object.handle;
  return pd;
}

int dealloc_pd(ibv_pd* pd) {
  abi::Reply reply;
  const int error = call_object(pd->context, abi::Op::kDeallocPd, pd->handle, &reply);
  if (error == 0) dispose(pd);
  return error;
}

}  // namespace rocemu::provider
