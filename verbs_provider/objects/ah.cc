// ibv_create_ah(3) and ibv_destroy_ah(3).
#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/objects/qp_attributes.h"
#include "verbs_provider/structs/pd.h"

namespace rocemu::provider {

ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  auto* ah = make<ibv_ah>();
  if (ah == nullptr) return nullptr;
  abi::Request request{};
  request.op = abi::Op::kCreateAh;
  request.body.create_ah.pd = pd->handle;
  request.body.create_ah.attr = to_abi(*attr);
  abi::Reply reply;
  if (const int error = call(pd->context, request, &reply); error != 0) {
    dispose(ah);
    return fail<ibv_ah>(error);
  }
  ah->handle = reply.body.object.handle;
  hold(pd);
  return ah;
}

int destroy_ah(ibv_ah* ah) {
  abi::Reply reply;
  const int error = call_object(ah->context, abi::Op::kDestroyAh, ah->handle, &reply);
  if (error != 0 && !is_gone_with_its_device(error)) return error;
  release(ah->pd);
  dispose(ah);
  return 0;
}

}  // namespace rocemu::provider
