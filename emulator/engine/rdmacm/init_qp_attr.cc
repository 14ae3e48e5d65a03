#include "emulator/engine/rdmacm/init_qp_attr.h"

#include <algorithm>
#include <cerrno>

#include "emulator/engine/rdmacm/command_codec.h"

namespace rocemu::engine::cm::commands {
namespace {

abi::ucma::QpAttrResponse response_of(const QpAttributes& attributes, const Route& route) {
  const abi::QpAttr& attr = attributes.attr;
  abi::ucma::QpAttrResponse out{};
  out.qp_attr_mask = attributes.mask;
  out.qp_state = attr.qp_state;
  out.cur_qp_state = attr.cur_qp_state;
  out.path_mtu = attr.path_mtu;
  out.path_mig_state = attr.path_mig_state;
  out.qkey = attr.qkey;
  out.rq_psn = attr.rq_psn;
  out.sq_psn = attr.sq_psn;
  out.dest_qp_num = attr.dest_qp_num;
  out.qp_access_flags = attr.qp_access_flags;
  if ((attributes.mask & abi::kAttrAv) != 0) {
    wire::IpAddress dgid;
    std::copy(std::begin(attr.ah_attr.dgid), std::end(attr.ah_attr.dgid), dgid.bytes.begin());
    out.ah_attr = ah_attr(route, dgid);
    out.ah_attr.sgid_index = attr.ah_attr.sgid_index;
    out.ah_attr.hop_limit = attr.ah_attr.hop_limit;
    out.ah_attr.traffic_class = attr.ah_attr.traffic_class;
    out.ah_attr.flow_label = attr.ah_attr.flow_label;
  }
  out.pkey_index = attr.pkey_index;
  out.max_rd_atomic = attr.max_rd_atomic;
  out.max_dest_rd_atomic = attr.max_dest_rd_atomic;
  out.min_rnr_timer = attr.min_rnr_timer;
  out.port_num = attr.port_num;
  out.timeout = attr.timeout;
  out.retry_cnt = attr.retry_cnt;
  out.rnr_retry = attr.rnr_retry;
  return out;
}

}  // namespace

int init_qp_attr(const IdTable& ids, const ConnectionManager& connections, const CmCommand& command,
                 std::vector<std::byte>& response) {
  const auto in = parse<abi::ucma::InitQpAttr>(command);
  if (!in) return EINVAL;
  if (command.out_size < sizeof(abi::ucma::QpAttrResponse)) return ENOSPC;
  if (in->qp_state > static_cast<uint32_t>(abi::QpState::kErr)) return EINVAL;
  RdmaId* id;
  if (const int error = ids.find_with_device(command.channel, in->id, id)) return error;
  const auto to = static_cast<abi::QpState>(in->qp_state);
  QpAttributes attributes;
  if (id->was_known_to_manager && !id->is_datagram()) {
    if (!id->connection) return EINVAL;
    const auto known = connections.qp_attributes(*id->connection, to);
    if (!known) return known.error();
    attributes = *known;
    // This is the starting PSN that REQ or REP announces to the peer, whether or not the message
    // was sent already.
    if (to == abi::QpState::kRtr) attributes.attr.rq_psn = id->starting_psn.value();
    if ((attributes.mask & abi::kAttrTimeout) != 0 && id->ack_timeout) {
      attributes.attr.timeout = *id->ack_timeout;
    }
  } else {
    attributes.mask = abi::kAttrPkeyIndex | abi::kAttrPort;
    attributes.attr.port_num = 1;
    if (id->is_datagram()) {
      choose_qkey(*id, 0);
      attributes.attr.qkey = id->qkey;
      attributes.mask |= abi::kAttrQkey;
    } else {
      attributes.mask |= abi::kAttrAccessFlags;
    }
  }
  attributes.mask |= abi::kAttrState;
  attributes.attr.qp_state = in->qp_state;
  respond(command, response_of(attributes, route_of(*id)), response);
  return 0;
}

}  // namespace rocemu::engine::cm::commands
