#include "emulator/engine/rdmacm/multicast_joins.h"

#include <cerrno>

#include "emulator/engine/rdmacm/command_codec.h"

namespace rocemu::engine::cm {
namespace {

using abi::ucma::EventType;
using abi::ucma::JoinFlags;

constexpr uint32_t kMulticastQpn = 0xffffff;

}  // namespace

int MulticastJoins::join_ip(const CmCommand& command, std::vector<std::byte>& response) {
  const auto in = parse<abi::ucma::JoinIpMcast>(command);
  if (!in) return EINVAL;
  const auto address = address_in(in->address);
  if (!address) return EINVAL;
  return join(command, in->id, in->uid, *address, response);
}

int MulticastJoins::join(const CmCommand& command, std::vector<std::byte>& response) {
  const auto in = parse<abi::ucma::JoinMcast>(command);
  if (!in) return EINVAL;
  const auto address = address_in(in->address, in->address_size);
  if (!address) return EINVAL;
  // The difference between send-only and full members matters only to a subnet manager.
  if (in->flags != JoinFlags::kFullMember && in->flags != JoinFlags::kSendOnlyFullMember) {
    return EINVAL;
  }
  return join(command, in->id, in->uid, *address, response);
}

int MulticastJoins::join(const CmCommand& command, uint32_t number, uint64_t uid,
                         const SocketAddress& address, std::vector<std::byte>& response) {
  if (command.out_size < sizeof(abi::ucma::CreateIdResponse)) return ENOSPC;
  RdmaId* id;
  if (const int error = ids_.find_with_device(command.channel, number, id)) return error;
  if (id->state != IdState::kBound && id->state != IdState::kAddressResolved) return EINVAL;
  if (!id->is_datagram()) return EINVAL;
  const Join* joined = joins_.create(id->number);
  if (joined == nullptr) return ENOMEM;

  EventOutput::Event event{};
  event.uid = uid;
  event.id = joined->number.value;
  event.reserved = id->number.value;
  event.event = EventType::kMulticastJoin;
  choose_qkey(*id, 0);
  event.param.ud.qp_num = kMulticastQpn;
  event.param.ud.qkey = id->qkey;
  event.param.ud.ah_attr =
      ah_attr(route_of(*id), address.is_any() ? wire::IpAddress{} : address.address);
  events_.emit(id->channel, event);
  respond(command, abi::ucma::CreateIdResponse{joined->number.value}, response);
  return 0;
}

int MulticastJoins::leave(const CmCommand& command, std::vector<std::byte>& response) {
  const auto in = parse<abi::ucma::DestroyId>(command);
  if (!in) return EINVAL;
  if (command.out_size < sizeof(abi::ucma::EventsReported)) return ENOSPC;
  const Join* joined = joins_.find(GroupNumber{in->id});
  if (joined == nullptr) return ENOENT;
  RdmaId* id;
  if (const int error = ids_.find(command.channel, joined->id.value, id)) return error;
  joins_.destroy(joined->number);
  respond(command, abi::ucma::EventsReported{}, response);
  return 0;
}

void MulticastJoins::leave_all(const RdmaId& id) {
  joins_.for_each([&](const Join& join) {
    if (join.id == id.number) joins_.destroy(join.number);
  });
}

}  // namespace rocemu::engine::cm
