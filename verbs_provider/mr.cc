// ibv_reg_mr(3) and ibv_dereg_mr(3). Nothing is pinned: the daemon reaches the memory as it is when
// it is used.
#include "verbs_provider/context.h"
#include "verbs_provider/objects.h"
#include "verbs_provider/verbs.h"

namespace rocemu::provider {

ibv_mr* reg_mr(ibv_pd* pd, void* address, size_t length, uint64_t iova, int access) {
  auto* mr = make<VerbsMr>();
  if (mr == nullptr) return nullptr;
  abi::Request request{};
  request.op = abi::Op::kRegMr;
  request.body.reg_mr.pd = pd->handle;
  request.body.reg_mr.access = static_cast<uint32_t>(access);
  request.body.reg_mr.address = reinterpret_cast<uint64_t>(address);
  request.body.reg_mr.length = length;
  request.body.reg_mr.iova = iova;
  abi::Reply reply;
  if (const int error = call(pd->context, request, &reply); error != 0) {
    dispose(mr);
    return fail<ibv_mr>(error);
  }
  mr->type = MrType::kMr;
  mr->access = access;
  mr->mr.handle = reply.body.reg_mr.handle;
  mr->mr.lkey = reply.body.reg_mr.lkey;
  mr->mr.rkey = reply.body.reg_mr.rkey;
  return &mr->mr;
}

int dereg_mr(VerbsMr* mr) {
  abi::Reply reply;
  const int error = call_object(mr->mr.context, abi::Op::kDeregMr, mr->mr.handle, &reply);
  if (error == 0) dispose(mr);
  return error;
}

}  // namespace rocemu::provider
