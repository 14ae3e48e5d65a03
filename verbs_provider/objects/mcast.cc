// ibv_attach_mcast(3) and ibv_detach_mcast(3). The MLID is ignored: RoCE has no LIDs.
#include <cerrno>
#include <cstring>

#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"

namespace rocemu::provider {
namespace {

/// Attaches or detaches a QP. "Only QPs of Transport Service Type IBV_QPT_UD may be attached to
/// multicast groups."
int call_mcast(abi::Op op, const ibv_qp& qp, const ibv_gid& gid) {
  if (qp.qp_type != IBV_QPT_UD) return EINVAL;
  abi::Request request{};
  request.op = op;
  request.body.mcast.qpn = qp.handle;
  memcpy(request.body.mcast.gid, gid.raw, sizeof(gid.raw));
  abi::Reply reply;
  return call(qp.context, request, &reply);
}

}  // namespace

int attach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) {
  return call_mcast(abi::Op::kAttachMcast, *qp, *gid);
}

int detach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) {
  return call_mcast(abi::Op::kDetachMcast, *qp, *gid);
}

}  // namespace rocemu::provider
