#include "emulator/engine/verbs/commands.h"

#include <cerrno>

#include "emulator/engine/faults/request_faults.h"
#include "emulator/engine/verbs/ah_commands.h"
#include "emulator/engine/verbs/cq_commands.h"
#include "emulator/engine/verbs/device_commands.h"
#include "emulator/engine/verbs/mcast_commands.h"
#include "emulator/engine/verbs/memory_commands.h"
#include "emulator/engine/verbs/qp_commands.h"
#include "emulator/engine/verbs/srq_commands.h"
#include "emulator/engine/verbs/xrc_commands.h"

namespace rocemu::engine {
namespace {

using abi::Op;
using abi::Reply;
using abi::Request;

int dispatch(CommandContext& context, ClientId client, const Request& request, Reply::Body& out) {
  const Request::Body& in = request.body;
  Device& device = context.objects.device_of(client);
  switch (request.op) {
    case Op::kQueryDevice:
      return query_device(context, device, out.device);
    case Op::kQueryPort:
      return query_port(device, in.query_port.port, out.port);
    case Op::kAllocPd:
      return alloc_pd(context, client, out.object.handle);
    case Op::kDeallocPd:
      return dealloc_pd(context, client, in.object.handle);
    case Op::kRegMr:
      return reg_mr(context, client, in, out);
    case Op::kQueryPd:
      return query_pd(context, client, in.object.handle);
    case Op::kReregMr:
      return rereg_mr(context, client, in, out);
    case Op::kQueryMr:
      return query_mr(context, client, in.object.handle, out);
    case Op::kAdviseMr:
      return advise_mr(context, client, in);
    case Op::kAllocMw:
      return alloc_mw(context, client, in, out);
    case Op::kDeallocMw:
      return dealloc_mw(context, client, in.object.handle);
    case Op::kAllocDm:
      return alloc_dm(context, client, in, out.object.handle);
    case Op::kFreeDm:
      return free_dm(context, client, in.object.handle);
    case Op::kDeregMr:
      return dereg_mr(context, client, in.object.handle);
    case Op::kCreateCq:
      return create_cq(context, client, in, out);
    case Op::kResizeCq:
      return resize_cq(context, client, in, out);
    case Op::kModifyCq:
      return modify_cq(context, client, in);
    case Op::kDestroyCq:
      return destroy_cq(context, client, in.object.handle);
    case Op::kCreateQp:
      return create_qp(context, client, in, out);
    case Op::kModifyQp:
      return modify_qp(context, client, in, out);
    case Op::kQueryQp:
      return query_qp(context, client, in.object.handle, out);
    case Op::kDestroyQp:
      return destroy_qp(context, client, in);
    case Op::kCreateSrq:
      return create_srq(context, client, in, out);
    case Op::kModifySrq:
      return modify_srq(context, client, in);
    case Op::kQuerySrq:
      return query_srq(context, client, in.object.handle, out);
    case Op::kDestroySrq:
      return destroy_srq(context, client, in.object.handle);
    case Op::kOpenXrcd:
      return open_xrcd(context, client, in, out.object.handle);
    case Op::kCloseXrcd:
      return close_xrcd(context, client, in.object.handle);
    case Op::kOpenQp:
      return open_qp(context, client, in, out);
    case Op::kAttachMcast:
      return attach_mcast(context, client, in);
    case Op::kDetachMcast:
      return detach_mcast(context, client, in);
    case Op::kCreateAh:
      return create_ah(context, client, in, out.object.handle);
    case Op::kDestroyAh:
      return destroy_ah(context, client, in.object.handle);
    case Op::kHello:  // the daemon's; here only for rules, as what follows
    case Op::kCreateChannel:
      return 0;
    default:
      return abi::may_be_asked_for(request.op) ? 0 : EOPNOTSUPP;
  }
}

}  // namespace

Reply execute(CommandContext& context, ClientId client, const Request& request) {
  Reply reply{};
  reply.magic = abi::kMagic;
  reply.version = request.version;  // the daemon's own, but in a replay that of the recording
  reply.op = request.op;
  reply.sequence = request.sequence;
  if (context.objects.has_lost_its_device(client) && !abi::may_be_asked_for(request.op)) {
    reply.error = EIO;
    return reply;
  }
  if (context.transport.faults().watches(faults::Where::kVerb)) [[unlikely]] {
    reply.error = faults::verb_fault(context.transport.faults(), context.objects, client, request);
    if (reply.error != 0) return reply;
  }
  reply.error =
      request.refusal != 0 ? request.refusal : dispatch(context, client, request, reply.body);
  return reply;
}

}  // namespace rocemu::engine
