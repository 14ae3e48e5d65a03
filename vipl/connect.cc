// The side that requests a connection, and the end of connections: VipConnectRequest, VipDisconnect
#include <algorithm>

#include "vipl/completion.h"
#include "vipl/connection.h"
#include "vipl/handlers.h"
#include "vipl/queue_pair.h"

namespace rocemu::vipl {
namespace {

// Reasons of REJ messages: IBTA vol 1, 12.6.7.2, table "REJ reasons".
constexpr int kInvalidServiceId = 8;
constexpr int kConsumerDefined = 28;

VIP_RETURN meaning_of_rejection(const CmEvent& event) {
  if (event.status == kInvalidServiceId) return VIP_NO_MATCH;  // no program listens
  const auto refusal = refusal_of(event.private_data);
  if (event.status != kConsumerDefined) return VIP_ERROR_RESOURCE;
  if (!refusal) return VIP_NO_MATCH;  // a program without VIPL uses the port
  switch (*refusal) {
    case Refusal::kNoMatch:
      return VIP_NO_MATCH;
    case Refusal::kReliability:
      return VIP_INVALID_RELIABILITY_LEVEL;
    case Refusal::kMtu:
      return VIP_INVALID_MTU;
    case Refusal::kByConsumer:
      break;
  }
  return VIP_REJECT;
}

VIP_RETURN meaning_of_failure(const CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_REJECTED:
      return meaning_of_rejection(event);
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
      return VIP_NOT_REACHABLE;
    default:
      return VIP_ERROR_RESOURCE;
  }
}

/// An attempt to connect to one of the ports of the remote discriminator
class Attempt {
 public:
  Attempt(Lock& lock, Vi& vi, Clock::time_point deadline)
      : lock_(lock), vi_(vi), deadline_(deadline) {}

  VIP_RETURN run(const NetAddress& local, const NetAddress& remote, uint16_t port,
                 const std::string& hello, VIP_VI_ATTRIBUTES* theirs) {
    if (ensure_qp(vi_)) connection_ = make_connection(*vi_.nic);
    if (connection_ == nullptr) return failed(vi_, nullptr, VIP_ERROR_RESOURCE, false);
    rdma_cm_id* id = connection_->id;
    sockaddr_storage from = socket_address(local.host, 0);
    sockaddr_storage to = socket_address(remote.host, port);
    const int left = milliseconds_until(deadline_);
    constexpr int kMaxMs = 2'000;  // an address that no host has is detected at its end
    const int patience = left < 0 ? kMaxMs : std::min(left, kMaxMs);
    if (rdma_resolve_addr(id, reinterpret_cast<sockaddr*>(&from), reinterpret_cast<sockaddr*>(&to),
                          patience) != 0 ||
        !await(RDMA_CM_EVENT_ADDR_RESOLVED)) {
      return end(VIP_NOT_REACHABLE);
    }
    if (rdma_resolve_route(id, patience) != 0 || !await(RDMA_CM_EVENT_ROUTE_RESOLVED)) {
      return end(VIP_NOT_REACHABLE);
    }
    rdma_conn_param param = parameters(vi_, hello);
    if (rdma_connect(id, &param) != 0) return end(VIP_ERROR_RESOURCE);
    requested_ = true;
    if (!await(RDMA_CM_EVENT_CONNECT_RESPONSE)) return end(VIP_ERROR_RESOURCE);
    const auto answer = hello_of(data_);
    if (!answer) return end(VIP_NO_MATCH);  // a program without VIPL uses the port
    if (!make_ready(vi_, id) || rdma_establish(id) != 0) return end(VIP_ERROR_RESOURCE);
    *theirs = answer->attributes;
    return connected(vi_, connection_);
  }

 private:
  bool await(rdma_cm_event_type wanted) {
    const auto event = next_event(lock_, vi_, *connection_, deadline_);
    if (!event) {
      why_ = VIP_TIMEOUT;
      return false;
    }
    data_ = event->private_data;
    if (event->type == wanted) return true;
    why_ = meaning_of_failure(*event);
    return false;
  }

  VIP_RETURN end(VIP_RETURN otherwise) {
    return failed(vi_, connection_.get(), why_.value_or(otherwise), requested_);
  }

  Lock& lock_;
  Vi& vi_;
  Clock::time_point deadline_;
  std::shared_ptr<Connection> connection_;
  std::string data_;
  std::optional<VIP_RETURN> why_;
  bool requested_ = false;
};

}  // namespace

VIP_RETURN request_connection(Lock& lock, Vi& vi, const NetAddress& local, const NetAddress& remote,
                              Clock::time_point deadline, bool of_peer, VIP_VI_ATTRIBUTES* theirs) {
  const std::string hello =
      to_bytes(Hello{vi.attributes, of_peer, remote.discriminator, local.discriminator});
  VIP_RETURN result = VIP_NO_MATCH;
  for (uint16_t i = 0; i < kPortsTried && result == VIP_NO_MATCH; ++i) {
    begin(vi);
    const uint16_t port = port_of(remote.discriminator, i);
    result = Attempt(lock, vi, deadline).run(local, remote, port, hello, theirs);
  }
  return result;
}

namespace {

/// Disconnects the VI. The connection's id remains until the peer has answered, or the connection
/// manager gives up.
void hang_up(Vi& vi) {
  const std::shared_ptr<Connection> connection = std::move(vi.connection);
  vi.connection.reset();
  if (connection == nullptr) return;
  connection->vi = nullptr;
  connection->closing = true;
  rdma_disconnect(connection->id);
  if (connection->over) destroy_connection(*vi.nic, *connection);
}

}  // namespace
}  // namespace rocemu::vipl

using namespace rocemu::vipl;

VIP_RETURN VipConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr,
                             VIP_NET_ADDRESS* RemoteAddr, VIP_ULONG Timeout,
                             VIP_VI_ATTRIBUTES* RemoteViAttribs) {
  return guarded([&] {
    const auto local = read_address(LocalAddr);
    const auto remote = read_address(RemoteAddr);
    Access<Vi> vi(vis, ViHandle);
    if (!vi || !local || !remote || Timeout == 0 || RemoteViAttribs == nullptr ||
        local->host != vi->nic->address || remote->host.size() != local->host.size()) {
      return VIP_INVALID_PARAMETER;
    }
    if (vi->state != VIP_STATE_IDLE) return VIP_INVALID_STATE;
    VIP_VI_ATTRIBUTES theirs{};
    const VIP_RETURN result =
        request_connection(vi.lock, *vi, *local, *remote, deadline_after(Timeout), false, &theirs);
    if (result == VIP_SUCCESS) *RemoteViAttribs = theirs;
    return result;
  });
}

VIP_RETURN VipDisconnect(VIP_VI_HANDLE ViHandle) {
  return guarded([&] {
    Access<Vi> vi(vis, ViHandle);
    if (!vi) return VIP_INVALID_PARAMETER;
    if (vi->state == VIP_STATE_CONNECT_PENDING) {
      vi->canceled = true;
      vi->nic->changed.notify_all();
      vi->nic->changed.wait(vi.lock,
                            [&] { return vi->dead || vi->state != VIP_STATE_CONNECT_PENDING; });
      if (vi->dead) return VIP_INVALID_PARAMETER;
    }
    drain(*vi->send.cq);  // completed descriptors stay completed
    drain(*vi->recv.cq);
    vi->state = VIP_STATE_IDLE;
    hang_up(*vi);
    // The next connection gets a new QP, because the peer may remember the number of the old QP for
    // a while.
    destroy_qp(*vi);
    flush(*vi, vi->send);
    flush(*vi, vi->recv);
    vi->send.broken = vi->recv.broken = false;
    return renew_qp(*vi) ? VIP_SUCCESS : VIP_ERROR_RESOURCE;
  });
}
