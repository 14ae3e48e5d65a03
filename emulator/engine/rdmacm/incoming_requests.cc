#include "emulator/engine/rdmacm/incoming_requests.h"

#include <cstddef>
#include <optional>
#include <span>
#include <variant>

#include "emulator/engine/rdmacm/addresses/local_addresses.h"
#include "emulator/engine/rdmacm/event_parameters.h"
#include "wire/cm/ip_cm.h"

namespace rocemu::engine::cm {
namespace {

struct Request {
  uint64_t service_id;
  std::span<const uint8_t> data;
};

std::optional<Request> request_in(const Event& event) {
  if (!event.message) return std::nullopt;
  if (const auto* req = std::get_if<wire::CmReq>(&*event.message)) {
    return Request{req->service_id, req->private_data};
  }
  if (const auto* sidr = std::get_if<wire::CmSidrReq>(&*event.message)) {
    return Request{sidr->service_id, sidr->private_data};
  }
  return std::nullopt;
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

/// Returns the number of bytes that precede the program's private data in a request.
size_t header_size(const RdmaId& listener) {
  return listener.source.family == Family::kIb ? 0 : wire::IpCmHeader::kSize;
}

/// Sets both addresses of an id that is not AF_IB to those in the request's header.
void set_addresses(RdmaId& id, const RdmaId& listener, const wire::IpCmHeader& header) {
  id.source = any_address(listener.source.family);
  id.destination = id.source;
  id.source.family = id.destination.family =
      header.destination.is_v4() ? Family::kIpv4 : Family::kIpv6;
  id.source.address = header.destination;
  id.source.port = listener.source.port;
  id.destination.address = header.source;
  id.destination.port = header.source_port;
}

/// Sets both addresses of an AF_IB id to the GIDs of the request's route.
void set_gids(RdmaId& id, const RdmaId& listener, const wire::IpAddress& own,
              const wire::IpAddress& remote) {
  id.source = listener.source;
  id.source.address = own;
  id.destination = any_address(listener.source.family);
  id.destination.address = remote;
  id.destination.pkey = id.source.pkey = wire::kDefaultPkey;
}

}  // namespace

void IncomingRequests::refuse(const Event& event) {
  if (event.kind == EventKind::kResolveRequest) {
    Resolved answer;
    answer.status = wire::SidrStatus::kServiceIdNotSupported;
    connections_.answer_resolve(event.connection, answer);
  } else {
    Reject answer;
    answer.reason = static_cast<uint16_t>(wire::CmRejectReason::kInvalidServiceId);
    connections_.reject(event.connection, answer);
  }
  connections_.destroy(event.connection);
}

void IncomingRequests::handle(const Event& event) {
  const std::optional<Request> request = request_in(event);
  if (!request) return refuse(event);
  const auto parsed = wire::parse_ip_cm_header(request->data.first<wire::IpCmHeader::kSize>());
  const auto header = parsed ? std::optional(*parsed) : std::nullopt;
  RdmaId* listener = header ? listening_.find(request->service_id, header) : nullptr;
  if (listener == nullptr) listener = listening_.find(request->service_id, std::nullopt);
  if (listener == nullptr) {
    // A request with an unknown header is rejected with the reason "consumer", as in Linux's
    // rdma_cm.
    const bool is_served = listening_.has_listener(request->service_id);
    if (is_served && !header) return connections_.destroy(event.connection);
    return refuse(event);
  }
  // rdma_listen(3): "backlog: backlog of incoming connection requests". As in Linux's rdma_ucm, a
  // request counts until the program has read its event. Further requests are rejected with the
  // reason "consumer" (REJ 28, SIDR_REP 2).
  const bool is_full = listener->unread_requests >= listener->backlog;
  RdmaId* id = is_full ? nullptr : ids_.create(listener->channel);
  if (id == nullptr) return connections_.destroy(event.connection);
  id->requested_of = listener->number;
  ++listener->unread_requests;

  id->port_space = listener->port_space;
  id->state = IdState::kConnecting;
  id->connection = event.connection;
  id->was_known_to_manager = true;
  id->num_paths = 1;
  id->local = LocalAddress{event.route.device, event.route.gid_index};
  id->traffic_class = event.route.traffic_class;
  if (listener->source.family == Family::kIb) {
    set_gids(*id, *listener, address_of(environment_, *id->local), event.route.remote);
  } else {
    set_addresses(*id, *listener, *header);
  }
  connections_.set_context(event.connection, id->number.value);

  EventOutput::Event out{};
  out.uid = listener->uid;
  out.id = id->number.value;
  out.reserved = listener->number.value;
  out.event = abi::ucma::EventType::kConnectRequest;
  const auto data = request->data.subspan(header_size(*listener));
  if (const auto* req = std::get_if<wire::CmReq>(&*event.message)) {
    id->qp_type = qp_type_of(*req);
    out.param.conn = connection_parameters(*req);
    out.param.conn.retry_count = req->retry_count;
    put_data(data, out.param.conn);
  } else {
    id->qp_type = abi::QpType::kUd;
    put_data(data, out.param.ud);
  }
  output_.emit(listener->channel, out);
}

}  // namespace rocemu::engine::cm
