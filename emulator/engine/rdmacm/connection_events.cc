#include "emulator/engine/rdmacm/connection_events.h"

#include <cerrno>

#include "emulator/engine/rdmacm/event_parameters.h"

namespace rocemu::engine::cm {
namespace {

using abi::ucma::EventType;
using Param = abi::ucma::EventResponse::Param;

/// Clears id.connection if that connection has ended, since a later connection can get the same
/// number.
void forget_if_gone(RdmaId& id, const ConnectionManager& connections) {
  if (!connections.exists(*id.connection)) id.connection.reset();
}

}  // namespace

void handle_connection_event(RdmaId& id, const ConnectionManager& connections, EventOutput& output,
                             const Event& event) {
  Param param{};
  switch (event.kind) {
    case EventKind::kRequest:
    case EventKind::kResolveRequest:
    case EventKind::kRemoteMra:
    case EventKind::kAlternatePathRequest:
      return;
    case EventKind::kEstablished:
      return output.emit(id, EventType::kEstablished);
    case EventKind::kReply:
      if (const auto* rep = std::get_if<wire::CmRep>(&*event.message)) {
        param.conn = connection_parameters(*rep);
        put_data(rep->private_data, param.conn);
      }
      return output.emit(id, EventType::kConnectResponse, 0, param);
    case EventKind::kRequestError:
    case EventKind::kReplyError:
      forget_if_gone(id, connections);
      return output.emit(id, EventType::kUnreachable, -ETIMEDOUT);
    case EventKind::kRejected: {
      forget_if_gone(id, connections);
      int32_t reason = 0;
      if (const auto* rej = event.message ? std::get_if<wire::CmRej>(&*event.message) : nullptr) {
        reason = rej->reason;
        put_data(rej->private_data, param.conn);
      }
      return output.emit(id, EventType::kRejected, reason, param);
    }
    case EventKind::kDisconnectRequest:
    case EventKind::kDisconnectReply:
    case EventKind::kDisconnectError:
      if (id.state != IdState::kConnecting) return;
      id.state = IdState::kDisconnected;
      return output.emit(id, EventType::kDisconnected,
                         event.kind == EventKind::kDisconnectError ? -ETIMEDOUT : 0);
    case EventKind::kTimewaitExit:
      id.connection.reset();
      return output.emit(id, EventType::kTimewaitExit);
    case EventKind::kResolveReply: {
      id.connection.reset();
      const auto* rep = std::get_if<wire::CmSidrRep>(&*event.message);
      if (rep == nullptr) return;
      put_data(rep->private_data, param.ud);
      if (rep->status != static_cast<uint8_t>(wire::SidrStatus::kValid)) {
        return output.emit(id, EventType::kUnreachable, rep->status, param);
      }
      id.qkey = rep->qkey;
      param.ud.qp_num = rep->qpn;
      param.ud.qkey = rep->qkey;
      param.ud.ah_attr = ah_attr(route_of(id), id.destination.address);
      return output.emit(id, EventType::kEstablished, 0, param);
    }
    case EventKind::kResolveError:
      id.connection.reset();
      return output.emit(id, EventType::kUnreachable, -ETIMEDOUT);
  }
}

}  // namespace rocemu::engine::cm
