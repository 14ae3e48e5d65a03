// Multicast groups. RoCE has no subnet manager to ask: every node that knows the address may join,
// and the GID is the address.
#include <cerrno>

#include "emulator/engine/rdmacm/rdma_cm.h"

namespace rocemu::engine::cm {
namespace {

using abi::ucma::EventType;
using abi::ucma::JoinFlags;

constexpr uint32_t kMulticastQpn = 0xffffff;

}  // namespace

int RdmaCm::join_ip_mcast(const CmCommand& command, std::vector<std::byte>& response) {
  const auto in = parse<abi::ucma::JoinIpMcast>(command);
  if (!in) return EINVAL;
  const auto address = parse_socket_address(in->address.bytes);
  if (!address) return EINVAL;
  return join(command, in->id, in->uid, *address, response);
}

int RdmaCm::join_mcast(const CmCommand& command, std::vector<std::byte>& response) {
  const auto in = parse<abi::ucma::JoinMcast>(command);
  if (!in) return EINVAL;
  const auto address = parse_socket_address(in->address.bytes);
  if (!address || address->size() != in->address_size) return EINVAL;
  // Send-only and full members differ for a subnet manager only.
  if (in->flags != JoinFlags::kFullMember && in->flags != JoinFlags::kSendOnlyFullMember) {
    return EINVAL;
  }
  return join(command, in->id, in->uid, *address, response);
}

int RdmaCm::join(const CmCommand& command, uint32_t number, uint64_t uid,
                 const SocketAddress& address, std::vector<std::byte>& response) {
  if (command.out_size < sizeof(abi::ucma::CreateIdResponse)) return ENOSPC;
  RdmaId* id;
  if (const int error = find_with_device(command.channel, number, id)) return error;
  if (id->state != IdState::kBound && id->state != IdState::kAddressResolved) return EINVAL;
  if (!id->is_datagram()) return EINVAL;
  Group* group = groups_.create(id->number);
  if (group == nullptr) return ENOMEM;
  if (!address.is_any()) group->gid = address.address;

  Event event{};
  event.uid = uid;
  event.id = group->number.value;
  event.reserved = id->number.value;
  event.event = EventType::kMulticastJoin;
  use_qkey(*id, 0);
  event.param.ud.qp_num = kMulticastQpn;
  event.param.ud.qkey = id->qkey;
  event.param.ud.ah_attr = ah_attr(route_of(*id), group->gid);
  emit(id->channel, event);
  respond(command, abi::ucma::CreateIdResponse{group->number.value}, response);
  return 0;
}

int RdmaCm::leave_mcast(const CmCommand& command, std::vector<std::byte>& response) {
  const auto in = parse<abi::ucma::DestroyId>(command);
  if (!in) return EINVAL;
  if (command.out_size < sizeof(abi::ucma::EventsReported)) return ENOSPC;
  Group* group = groups_.find(GroupNumber{in->id});
  if (group == nullptr) return ENOENT;
  RdmaId* id;
  if (const int error = find(command.channel, group->id.value, id)) return error;
  groups_.destroy(group->number);
  respond(command, abi::ucma::EventsReported{}, response);
  return 0;
}

}  // namespace rocemu::engine::cm
