#include "emulator/engine/cm/agreed_attributes.h"

#include <algorithm>
#include <cerrno>

namespace rocemu::engine::cm {
namespace {

using abi::QpType;

bool requests(QpType type) {
  return type == QpType::kRc || type == QpType::kXrcSend;
}
bool responds(QpType type) {
  return type == QpType::kRc || type == QpType::kXrcRecv;
}

// The following functions set the attributes that ibv_modify_qp(3) requires for each transition.

void to_init(const Connection& connection, QpAttributes& out) {
  out.attr.port_num = 1;
  out.attr.qp_access_flags = abi::kAccessRemoteWrite;
  if (responds(connection.qp_type) && connection.responder_resources > 0) {
    out.attr.qp_access_flags |= abi::kAccessRemoteRead | abi::kAccessRemoteAtomic;
  }
  out.mask |= abi::kAttrPkeyIndex | abi::kAttrPort | abi::kAttrAccessFlags;
}

void to_rtr(const Connection& connection, QpAttributes& out) {
  const Route& route = connection.route;
  abi::AhAttr& av = out.attr.ah_attr;
  std::copy(route.remote.bytes.begin(), route.remote.bytes.end(), av.dgid);
  av.flow_label = route.flow_label;
  av.sgid_index = route.gid_index;
  av.hop_limit = route.hop_limit;
  av.traffic_class = route.traffic_class;
  av.is_global = 1;
  av.port_num = 1;
  out.attr.path_mtu = connection.path_mtu;
  out.attr.dest_qp_num = connection.remote_qpn;
  out.attr.rq_psn = connection.local_psn.value();
  out.mask |= abi::kAttrAv | abi::kAttrPathMtu | abi::kAttrDestQpn | abi::kAttrRqPsn;
  if (responds(connection.qp_type)) {
    out.attr.max_dest_rd_atomic = connection.responder_resources;
    out.attr.min_rnr_timer = 0;  // in no message; 0 is the longest, and Linux's value
    out.mask |= abi::kAttrMaxDestRdAtomic | abi::kAttrMinRnrTimer;
  }
}

void to_rts(const Connection& connection, QpAttributes& out) {
  out.attr.sq_psn = connection.remote_psn.value();
  out.mask |= abi::kAttrSqPsn;
  if (requests(connection.qp_type)) {
    out.attr.retry_cnt = connection.retry_count;
    out.attr.rnr_retry = connection.rnr_retry_count;
    out.attr.max_rd_atomic = connection.initiator_depth;
    out.mask |= abi::kAttrRetryCnt | abi::kAttrRnrRetry | abi::kAttrMaxQpRdAtomic;
  }
  if (requests(connection.qp_type) || responds(connection.qp_type)) {
    out.attr.timeout = connection.local_ack_timeout;
    out.mask |= abi::kAttrTimeout;
  }
}

}  // namespace

wire::Result<QpAttributes, int> agreed_attributes(const Connection& connection, abi::QpState to) {
  bool peer_known = true;
  switch (connection.state) {
    case State::kReqSent:
      peer_known = false;
      break;
    case State::kRepReceived:
    case State::kReqReceived:
    case State::kRepSent:
    case State::kEstablished:
      break;
    case State::kDreqSent:
    case State::kDreqReceived:
    case State::kTimewait:
    case State::kClosed:
    case State::kSidrReqSent:
    case State::kSidrReqReceived:
      return EINVAL;
  }
  QpAttributes out;
  out.attr.qp_state = static_cast<uint32_t>(to);
  out.mask = abi::kAttrState;
  if (to == abi::QpState::kInit) {
    to_init(connection, out);
  } else if (to == abi::QpState::kRtr && peer_known) {
    to_rtr(connection, out);
  } else if (to == abi::QpState::kRts && peer_known) {
    to_rts(connection, out);
  } else {
    return EINVAL;
  }
  return out;
}

}  // namespace rocemu::engine::cm
