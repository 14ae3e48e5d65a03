// ibv_alloc_mw(3), ibv_dealloc_mw(3) and ibv_bind_mw(3).
#include <cerrno>

#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/structs/pd.h"

namespace rocemu::provider {

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) return fail<ibv_mw>(EINVAL);
  auto* mw = make<ibv_mw>();
  if (mw == nullptr) return nullptr;
  abi::Request request{};
  request.op = abi::Op::kAllocMw;
  request.body.alloc_mw.pd = pd->handle;
  request.body.alloc_mw.type = static_cast<abi::MwType>(type);
  abi::Reply reply;
  if (const int error = call(pd->context, request, &reply); error != 0) {
    dispose(mw);
    return fail<ibv_mw>(error);
  }
  // libibverbs leaves all these members of an ibv_mw to the provider.
  mw->context = pd->context;
  mw->pd = pd;
  mw->type = type;
  mw->handle = reply.body.alloc_mw.handle;
  mw->rkey = reply.body.alloc_mw.rkey;
  hold(pd);
  return mw;
}

int dealloc_mw(ibv_mw* mw) {
  abi::Reply reply;
  const int error = call_object(mw->context, abi::Op::kDeallocMw, mw->handle, &reply);
  if (error != 0 && !is_gone_with_its_device(error)) return error;
  release(mw->pd);
  dispose(mw);
  return 0;
}

/// Binds a type 1 window. The device, here the provider, chooses the new key, and posting sets it:
/// "In case of a success, the R_key of the memory window after the bind is returned"
/// (ibv_bind_mw(3)).
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind) {
  ibv_send_wr wr{};
  wr.wr_id = bind->wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind->send_flags;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
  wr.bind_mw.bind_info = bind->bind_info;
  return post_bind(qp, &wr);
}

}  // namespace rocemu::provider
