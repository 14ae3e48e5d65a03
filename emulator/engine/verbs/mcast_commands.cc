#include "emulator/engine/verbs/mcast_commands.h"

#include <algorithm>
#include <cerrno>

#include "emulator/engine/objects/owned.h"
#include "emulator/engine/transport/address_vector.h"

namespace rocemu::engine {
namespace {

wire::IpAddress group_of(const abi::Request::Body& in) {
  wire::IpAddress group;
  std::copy(std::begin(in.mcast.gid), std::end(in.mcast.gid), group.bytes.begin());
  return group;
}

/// Finds the QP. Returns 0, or the errno value that says why it cannot be a member of a multicast
/// group.
int find_datagram_qp(CommandContext& context, ClientId client, const abi::Request::Body& in,
                     QueuePair*& qp) {
  qp = owned(context.objects.qps, in.mcast.qpn, client);
  if (qp == nullptr) return ENOENT;
  // ibv_attach_mcast(3): "Only QPs of Transport Service Type IBV_QPT_UD may be attached".
  return qp->type == abi::QpType::kUd ? 0 : EINVAL;
}

}  // namespace

void report_membership(CommandContext& context, DeviceIndex device, const wire::IpAddress& group,
                       bool member) {
  if (context.objects.devices[device].config.outside) {
    context.step.emit(GroupChange{device, group, member});
  }
}

int attach_mcast(CommandContext& context, ClientId client, const abi::Request::Body& in) {
  QueuePair* qp;
  if (const int error = find_datagram_qp(context, client, in, qp)) return error;
  if (!group_of(in).is_multicast()) return EINVAL;
  switch (context.objects.multicast.attach(qp->device, group_of(in), qp->number)) {
    case MulticastTable::Attached::kFirst:
      report_membership(context, qp->device, group_of(in), true);
      [[fallthrough]];
    case MulticastTable::Attached::kNew:
      ++qp->multicast_groups;
      return 0;
    case MulticastTable::Attached::kAlready:
      return 0;  // ibv_attach_mcast(3): "the QP will still receive a single copy"
    case MulticastTable::Attached::kNoRoom:
      return ENOMEM;
  }
  __builtin_unreachable();
}

int detach_mcast(CommandContext& context, ClientId client, const abi::Request::Body& in) {
  QueuePair* qp;
  if (const int error = find_datagram_qp(context, client, in, qp)) return error;
  switch (context.objects.multicast.detach(qp->device, group_of(in), qp->number)) {
    case MulticastTable::Detached::kNotAttached:
      return EINVAL;
    case MulticastTable::Detached::kLast:
      report_membership(context, qp->device, group_of(in), false);
      [[fallthrough]];
    case MulticastTable::Detached::kOne:
      --qp->multicast_groups;
      return 0;
  }
  __builtin_unreachable();
}

}  // namespace rocemu::engine
