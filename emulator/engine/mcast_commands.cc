#include "emulator/engine/mcast_commands.h"

#include <algorithm>
#include <cerrno>

#include "emulator/engine/owned.h"
#include "emulator/engine/path.h"

namespace rocemu::engine {
namespace {

wire::IpAddress group_of(const abi::Request::Body& in) {
  wire::IpAddress group;
  std::copy(std::begin(in.mcast.gid), std::end(in.mcast.gid), group.bytes.begin());
  return group;
}

/// ibv_attach_mcast(3): "Only QPs of Transport Service Type IBV_QPT_UD may be attached".
QueuePair* datagram_qp(Fabric& fabric, ClientId client, const abi::Request::Body& in) {
  QueuePair* qp = owned(fabric.qps, in.mcast.qpn, client);
  return qp != nullptr && qp->type == abi::QpType::kUd ? qp : nullptr;
}

}  // namespace

int attach_mcast(Fabric& fabric, ClientId client, const abi::Request::Body& in) {
  QueuePair* qp = datagram_qp(fabric, client, in);
  if (qp == nullptr || !is_multicast(group_of(in))) return EINVAL;
  switch (fabric.multicast.attach(qp->device, group_of(in), qp->number)) {
    case MulticastTable::Attached::kFirst:
      fabric.group_changed(qp->device, group_of(in), true);
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

int detach_mcast(Fabric& fabric, ClientId client, const abi::Request::Body& in) {
  QueuePair* qp = datagram_qp(fabric, client, in);
  if (qp == nullptr) return EINVAL;
  switch (fabric.multicast.detach(qp->device, group_of(in), qp->number)) {
    case MulticastTable::Detached::kNotAttached:
      return EINVAL;
    case MulticastTable::Detached::kLast:
      fabric.group_changed(qp->device, group_of(in), false);
      [[fallthrough]];
    case MulticastTable::Detached::kOne:
      --qp->multicast_groups;
      return 0;
  }
  __builtin_unreachable();
}

}  // namespace rocemu::engine
