#include "emulator/engine/verbs/commands.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "emulator/engine/faults/request_faults.h"
#include "emulator/engine/verbs/ah_commands.h"
#include "emulator/engine/verbs/cq_commands.h"
#include "emulator/engine/verbs/device_commands.h"
#include "emulator/engine/verbs/mcast_commands.h"
#include "emulator/engine/verbs/memory_commands.h"
#include "emulator/engine/verbs/profile_limits.h"
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
  if (request.op == Op::kCreateCq || request.op == Op::kCreateQp) device.has_been_prepared = true;
  switch (request.op) {
    case Op::kQueryDevice:
      return query_device(device, out.device);
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
    case Op::kHello:  // the daemon carries out these two; only rules apply here
    case Op::kCreateChannel:
      return 0;
    default:
      return abi::may_be_asked_for(request.op) ? 0 : EOPNOTSUPP;
  }
}

/// Returns the number of objects of the kind that the request creates which all clients of the
/// device have. refusal_of() describes the units.
uint64_t in_use(const Objects& objects, DeviceIndex device, const Request& request) {
  const auto count = [&](const auto& table) {
    uint64_t total = 0;
    objects.clients.for_each_of(device, [&](ClientId client) { total += table.count_of(client); });
    return total;
  };
  switch (request.op) {
    case Op::kCreateQp:
      return count(objects.qps);
    case Op::kCreateCq:
      return count(objects.cqs);
    case Op::kCreateSrq:
      return count(objects.srqs);
    case Op::kRegMr:
      return count(objects.mrs.regions());
    case Op::kAllocMw:
      return count(objects.mrs.windows());
    case Op::kAllocPd:
      return count(objects.pds);
    case Op::kCreateAh:
      return count(objects.ahs);
    case Op::kAllocDm:
      return objects.devices[device].device_memory_used;
    case Op::kAttachMcast: {
      wire::IpAddress group;
      std::copy(std::begin(request.body.mcast.gid), std::end(request.body.mcast.gid),
                group.bytes.begin());
      return objects.multicast.members(device, group).size();
    }
    default:
      return 0;
  }
}

/// Does the same as dispatch(), after applying the limits of the device's profile.
int dispatch_by_profile(CommandContext& context, ClientId client, const Request& request,
                        Reply::Body& out) {
  const DeviceIndex device = context.objects.clients.device_of(client);
  const DeviceProfile& profile = *context.objects.devices[device].config.profile;
  if (request.op == Op::kCreateQp) context.objects.devices[device].has_been_prepared = true;
  if (const auto refusal = refusal_of(profile, request, in_use(context.objects, device, request))) {
    return refusal->error;
  }
  return dispatch(context, client, as_granted(profile, request), out);
}

}  // namespace

Reply execute(CommandContext& context, ClientId client, const Request& request) {
  Reply reply{};
  reply.magic = abi::kMagic;
  reply.version = request.version;  // the daemon's version; in a replay, the recorded one
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
  if (request.refusal != 0) {
    reply.error = request.refusal;
  } else if (context.objects.device_of(client).config.profile->is_generic()) [[likely]] {
    reply.error = dispatch(context, client, request, reply.body);
  } else {
    reply.error = dispatch_by_profile(context, client, request, reply.body);
  }
  return reply;
}

}  // namespace rocemu::engine
