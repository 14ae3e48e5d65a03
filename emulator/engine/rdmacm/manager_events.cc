// What the connection manager tells becomes events of rdma_cm ids, and requests become new ids.
#include <algorithm>
#include <cerrno>

#include "emulator/engine/rdmacm/rdma_cm.h"
#include "wire/cm/ip_cm.h"

namespace rocemu::engine::cm {
namespace {

using abi::ucma::ConnParam;
using abi::ucma::EventType;
using Param = abi::ucma::EventResponse::Param;

/// Private data as an event carries it: always all that the message has room for.
template <class Parameters>
void put_data(std::span<const uint8_t> data, Parameters& out) {
  std::copy(data.begin(), data.end(), out.private_data);
  out.private_data_len = static_cast<uint8_t>(data.size());
}

// rdma_get_cm_event(3): what an event calls responder resources is "requested of the recipient",
// the sender's initiator depth, and the other way round.
template <class Message>
ConnParam connection_parameters(const Message& message) {
  ConnParam param{};
  param.responder_resources = message.initiator_depth;
  param.initiator_depth = message.responder_resources;
  param.flow_control = message.end_to_end_flow_control ? 1 : 0;
  param.rnr_retry_count = message.rnr_retry_count;
  param.srq = message.srq ? 1 : 0;
  param.qp_num = message.local_qpn;
  return param;
}

abi::QpType qp_type_of(const wire::CmReq& request) {
  switch (request.transport) {
    case wire::CmTransport::kUc:
      return abi::QpType::kUc;
    case wire::CmTransport::kExtended:
      return abi::QpType::kXrcRecv;
    case wire::CmTransport::kRc:
    case wire::CmTransport::kRd:
      break;
  }
  return abi::QpType::kRc;
}

/// The bytes before the program's private data.
size_t header_size(const RdmaId& listener) {
  return listener.source.family == Family::kIb ? 0 : wire::IpCmHeader::kSize;
}

bool hears(const RdmaId& listener, const wire::IpCmHeader& header) {
  const bool v4 = header.destination.is_v4();
  if (listener.source.family == Family::kIb) return false;
  if (listener.source.is_any() && !listener.family_only) return true;
  if ((listener.source.family == Family::kIpv4) != v4) return false;
  return listener.source.is_any() || listener.source.address == header.destination;
}

struct Request {
  uint64_t service_id;
  std::span<const uint8_t> data;
};

std::optional<Request> request_in(const cm::Event& event) {
  if (!event.message) return std::nullopt;
  if (const auto* req = std::get_if<wire::CmReq>(&*event.message)) {
    return Request{req->service_id, req->private_data};
  }
  if (const auto* sidr = std::get_if<wire::CmSidrReq>(&*event.message)) {
    return Request{sidr->service_id, sidr->private_data};
  }
  return std::nullopt;
}

}  // namespace

void RdmaCm::handle(const cm::Event& event) {
  if (event.kind == EventKind::kRequest || event.kind == EventKind::kResolveRequest) {
    return handle_request(event);
  }
  RdmaId* id = ids_.find(RdmaIdNumber{static_cast<uint32_t>(event.context)});
  if (id != nullptr && id->connection == event.connection) handle_event_of(*id, event);
}

// ---- Requests -------------------------------------------------------------------------------

RdmaId* RdmaCm::listener_for(uint64_t service,
                             const std::optional<wire::IpCmHeader>& header) const {
  const auto found = services_.find(service);
  if (found == services_.end()) return nullptr;
  RdmaId* best = nullptr;
  for (const RdmaIdNumber number : found->second.ids) {
    RdmaId* id = ids_.find(number);
    const bool fits = header ? hears(*id, *header) : id->source.family == Family::kIb;
    // An address comes before the wildcard.
    if (fits && (best == nullptr || best->source.is_any())) best = id;
  }
  return best;
}

void RdmaCm::refuse(const cm::Event& event) {
  if (event.kind == EventKind::kResolveRequest) {
    Resolved answer;
    answer.status = wire::SidrStatus::kServiceIdNotSupported;
    fabric_.connections.answer_resolve(event.connection, answer);
  } else {
    Reject answer;
    answer.reason = static_cast<uint16_t>(wire::CmRejectReason::kInvalidServiceId);
    fabric_.connections.reject(event.connection, answer);
  }
  fabric_.connections.destroy(event.connection);
}

void RdmaCm::handle_request(const cm::Event& event) {
  const std::optional<Request> request = request_in(event);
  if (!request) return refuse(event);
  const auto parsed = wire::parse_ip_cm_header(request->data.first<wire::IpCmHeader::kSize>());
  const auto header = parsed ? std::optional(*parsed) : std::nullopt;
  RdmaId* listener = header ? listener_for(request->service_id, header) : nullptr;
  if (listener == nullptr) listener = listener_for(request->service_id, std::nullopt);
  if (listener == nullptr) {
    const bool served = services_.contains(request->service_id);
    // A header that nobody understands is refused as Linux's rdma_cm does: by the consumer.
    if (served && !header) return fabric_.connections.destroy(event.connection);
    return refuse(event);
  }
  // rdma_listen(3): "backlog: backlog of incoming connection requests". As Linux's rdma_ucm counts
  // them, a request waits until its event is read; one too many is refused by the consumer (REJ 28,
  // SIDR_REP 2).
  const bool is_full = listener->unread_requests >= listener->backlog;
  RdmaId* id = is_full ? nullptr : new_id(listener->channel);
  if (id == nullptr) return fabric_.connections.destroy(event.connection);
  id->requested_of = listener->number;
  ++listener->unread_requests;

  id->port_space = listener->port_space;
  id->state = IdState::kConnecting;
  id->connection = event.connection;
  id->was_known_to_manager = true;
  id->num_paths = 1;
  id->local = LocalAddress{event.route.device, event.route.gid_index};
  id->traffic_class = event.route.traffic_class;
  id->source = any_address(listener->source.family);
  id->destination = id->source;
  if (listener->source.family == Family::kIb) {
    id->source = listener->source;
    id->source.address = address_of(*id->local);
    id->destination.address = event.route.remote;
    id->destination.pkey = id->source.pkey = wire::kDefaultPkey;
  } else {
    id->source.family = id->destination.family =
        header->destination.is_v4() ? Family::kIpv4 : Family::kIpv6;
    id->source.address = header->destination;
    id->source.port = listener->source.port;
    id->destination.address = header->source;
    id->destination.port = header->source_port;
  }
  const size_t skipped = header_size(*listener);
  const auto data = request->data.subspan(skipped);
  Param param{};
  if (const auto* req = std::get_if<wire::CmReq>(&*event.message)) {
    id->qp_type = qp_type_of(*req);
    param.conn = connection_parameters(*req);
    param.conn.retry_count = req->retry_count;
    put_data(data, param.conn);
  } else {
    id->qp_type = abi::QpType::kUd;
    put_data(data, param.ud);
  }
  fabric_.connections.set_context(event.connection, id->number.value);

  Event told{};
  told.uid = listener->uid;
  told.id = id->number.value;
  told.reserved = listener->number.value;
  told.event = EventType::kConnectRequest;
  told.param = param;
  emit(listener->channel, told);
}

// ---- Events of ids that exist ---------------------------------------------------------------

void RdmaCm::forget_if_gone(RdmaId& id) {
  if (!fabric_.connections.exists(*id.connection)) id.connection.reset();
}

void RdmaCm::handle_event_of(RdmaId& id, const cm::Event& event) {
  Param param{};
  switch (event.kind) {
    case EventKind::kRequest:
    case EventKind::kResolveRequest:
    case EventKind::kRemoteMra:
    case EventKind::kAlternatePathRequest:
      return;
    case EventKind::kEstablished:
      return emit(id, EventType::kEstablished);
    case EventKind::kReply:
      if (const auto* rep = std::get_if<wire::CmRep>(&*event.message)) {
        param.conn = connection_parameters(*rep);
        put_data(rep->private_data, param.conn);
      }
      return emit(id, EventType::kConnectResponse, 0, param);
    case EventKind::kRequestError:
    case EventKind::kReplyError:
      forget_if_gone(id);
      return emit(id, EventType::kUnreachable, -ETIMEDOUT);
    case EventKind::kRejected: {
      forget_if_gone(id);
      int32_t reason = 0;
      if (const auto* rej = event.message ? std::get_if<wire::CmRej>(&*event.message) : nullptr) {
        reason = rej->reason;
        put_data(rej->private_data, param.conn);
      }
      return emit(id, EventType::kRejected, reason, param);
    }
    case EventKind::kDisconnectRequest:
    case EventKind::kDisconnectReply:
    case EventKind::kDisconnectError:
      if (id.state != IdState::kConnecting) return;
      id.state = IdState::kDisconnected;
      return emit(id, EventType::kDisconnected,
                  event.kind == EventKind::kDisconnectError ? -ETIMEDOUT : 0);
    case EventKind::kTimewaitExit:
      id.connection.reset();
      return emit(id, EventType::kTimewaitExit);
    case EventKind::kResolveReply: {
      id.connection.reset();
      const auto* rep = std::get_if<wire::CmSidrRep>(&*event.message);
      if (rep == nullptr) return;
      put_data(rep->private_data, param.ud);
      if (rep->status != static_cast<uint8_t>(wire::SidrStatus::kValid)) {
        return emit(id, EventType::kUnreachable, rep->status, param);
      }
      id.qkey = rep->qkey;
      param.ud.qp_num = rep->qpn;
      param.ud.qkey = rep->qkey;
      param.ud.ah_attr = ah_attr(route_of(id), id.destination.address);
      return emit(id, EventType::kEstablished, 0, param);
    }
    case EventKind::kResolveError:
      id.connection.reset();
      return emit(id, EventType::kUnreachable, -ETIMEDOUT);
  }
}

}  // namespace rocemu::engine::cm
