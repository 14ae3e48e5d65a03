// ibv_open_qp(3): a further reference to an XRC target QP, which another process may have created.
#include <cerrno>

#include "verbs_provider/base/objects.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/context/context.h"
#include "verbs_provider/objects/make_qp.h"
#include "verbs_provider/structs/pd.h"
#include "verbs_provider/structs/qp.h"
#include "verbs_provider/structs/srq.h"

namespace rocemu::provider {

ibv_qp* open_qp(ibv_context* context, ibv_qp_open_attr* attr) {
  constexpr uint32_t kRequired =
      IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  if (attr->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED) return fail<ibv_qp>(EOPNOTSUPP);
  if ((attr->comp_mask & kRequired) != kRequired || attr->xrcd == nullptr) {
    return fail<ibv_qp>(EINVAL);
  }
  // Only XRC target QPs can be shared.
  if (attr->qp_type != IBV_QPT_XRC_RECV) return fail<ibv_qp>(EINVAL);
  auto* qp = make<Qp>();
  if (qp == nullptr) return nullptr;
  ibv_qp_init_attr_ex same{};
  same.qp_type = attr->qp_type;
  if ((attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0) same.qp_context = attr->qp_context;
  same.xrcd = attr->xrcd;
  fill(qp, context, same);
  ibv_qp& base = qp->verbs.qp;
  abi::Request request{};
  request.op = abi::Op::kOpenQp;
  request.body.open_qp.user_handle = reinterpret_cast<uint64_t>(&base);
  request.body.open_qp.xrcd = qp->xrcd->handle;
  request.body.open_qp.qpn = attr->qp_num;
  abi::Reply reply;
  if (const int error = call(context, request, &reply); error != 0) {
    dispose_qp(qp);
    return fail<ibv_qp>(error);
  }
  const auto& opened = reply.body.open_qp;
  base.handle = base.qp_num = opened.qpn;
  base.state = static_cast<ibv_qp_state>(opened.state);
  qp->state = static_cast<abi::QpState>(opened.state);
  return &base;
}

}  // namespace rocemu::provider
