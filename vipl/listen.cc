// The side that receives connection requests: VipConnectWait, VipConnectAccept, VipConnectReject.
//
// A request goes to the thread that waits for its discriminator. If no thread waits, the request is
// kept if the last wait for this discriminator returned a request or did not wait (a timeout of 0),
// since such a server will wait again. Otherwise it is answered with VIP_NO_MATCH.
#include <algorithm>

#include "vipl/connection.h"
#include "vipl/queue_pair.h"

namespace rocemu::vipl {

Handles<Request> requests(5);

namespace {

bool is_meant(const Waiter& waiter, const Request& request) {
  if (waiter.got != nullptr || waiter.discriminator != request.discriminator) return false;
  if ((waiter.peer != nullptr) != request.of_peer) return false;
  return waiter.peer == nullptr || *waiter.peer == request.from;
}

bool anybody_waits_for(const Nic& nic, const std::string& discriminator) {
  return std::any_of(nic.waiters.begin(), nic.waiters.end(), [&](const Waiter* waiter) {
    return waiter->peer == nullptr && waiter->discriminator == discriminator;
  });
}

/// Returns a request that arrived while no thread waited, and whose client has not given up since.
std::shared_ptr<Request> take_unclaimed(Nic& nic, const std::string& discriminator) {
  for (auto i = nic.unclaimed.begin(); i != nic.unclaimed.end();) {
    std::shared_ptr<Request> request = *i;
    const bool gone = !request->connection->events.empty();
    if (!gone && request->discriminator != discriminator) {
      ++i;
      continue;
    }
    i = nic.unclaimed.erase(i);
    if (!gone) return request;
    destroy_connection(nic, *request->connection);
  }
  return nullptr;
}

/// Stops keeping requests for the discriminator, because no thread will wait for them again.
void stop_serving(Nic& nic, const std::string& discriminator) {
  while (const auto request = take_unclaimed(nic, discriminator)) {
    refuse_connection(nic, *request->connection, Refusal::kNoMatch);
  }
  const auto found = nic.served.find(discriminator);
  if (found == nic.served.end()) return;
  close_listener(nic, found->second);
  nic.served.erase(found);
}

std::shared_ptr<Request> wait_for_request(Access<Nic>& nic, const std::string& discriminator,
                                          Clock::time_point deadline) {
  Waiter waiter{discriminator, nullptr, nullptr};
  waiter.got = take_unclaimed(*nic, discriminator);
  nic->waiters.push_back(&waiter);
  const auto ready = [&] { return waiter.got != nullptr || nic->dead; };
  if (deadline == Clock::time_point::max()) {
    nic->changed.wait(nic.lock, ready);
  } else {
    nic->changed.wait_until(nic.lock, deadline, ready);
  }
  nic->waiters.remove(&waiter);
  return waiter.got;
}

}  // namespace

uint16_t open_listener(Nic& nic, const std::string& discriminator) {
  for (uint16_t i = 0; i < kPortsTried; ++i) {
    const auto found = nic.listeners.find(port_of(discriminator, i));
    if (found == nic.listeners.end()) continue;
    ++found->second.users;
    return found->first;
  }
  for (uint16_t i = 0; i < kPortsTried; ++i) {
    const uint16_t port = port_of(discriminator, i);
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(nic.channel, &id, nullptr, RDMA_PS_TCP) != 0) return 0;
    sockaddr_storage address = socket_address(nic.address, port);
    constexpr int kBacklog = 64;
    if (rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)) == 0 &&
        rdma_listen(id, kBacklog) == 0) {
      nic.listeners[port] = {0, id, 1};
      return port;
    }
    rdma_destroy_id(id);  // another process uses it
  }
  return 0;
}

void close_listener(Nic& nic, uint16_t port) {
  const auto found = nic.listeners.find(port);
  if (found == nic.listeners.end() || --found->second.users != 0) return;
  rdma_destroy_id(found->second.id);
  nic.listeners.erase(found);
}

void take_request(Nic& nic, rdma_cm_id* id, const std::string& private_data) {
  const auto connection = adopt_connection(nic, id);
  const auto hello = hello_of(private_data);
  if (!hello) return refuse_connection(nic, *connection, Refusal::kNoMatch);
  auto request = std::make_shared<Request>();
  request->nic = nic.shared_from_this();
  request->connection = connection;
  request->from = {host_of(rdma_get_peer_addr(id)), hello->own_discriminator};
  request->discriminator = hello->discriminator;
  request->of_peer = hello->of_peer;
  request->attributes = hello->attributes;
  for (Waiter* waiter : nic.waiters) {
    if (!is_meant(*waiter, *request)) continue;
    waiter->got = request;
    nic.changed.notify_all();
    return;
  }
  if (request->of_peer || !nic.served.contains(request->discriminator)) {
    return refuse_connection(nic, *connection, Refusal::kNoMatch);
  }
  nic.unclaimed.push_back(request);
}

VIP_RETURN compare(const VIP_VI_ATTRIBUTES& ours, const VIP_VI_ATTRIBUTES& theirs) {
  if (ours.ReliabilityLevel != theirs.ReliabilityLevel) return VIP_INVALID_RELIABILITY_LEVEL;
  if (ours.MaxTransferSize != theirs.MaxTransferSize) return VIP_INVALID_MTU;
  return VIP_SUCCESS;
}

VIP_RETURN accept_connection(Lock& lock, Vi& vi, Request& request) {
  const std::shared_ptr<Connection> connection = request.connection;
  begin(vi);
  if (!connection->events.empty()) {  // the client has given up
    return failed(vi, connection.get(), VIP_TIMEOUT, false);
  }
  if (!ensure_qp(vi)) return failed(vi, connection.get(), VIP_ERROR_RESOURCE, false);
  const std::string hello = to_bytes(Hello{vi.attributes, request.of_peer, "", ""});
  rdma_conn_param param = parameters(vi, hello);
  // The connection is set before the reply is sent, so that events of the QP that arrive while the
  // reply is in transit belong to this connection.
  vi.connection = connection;
  const bool sent = make_ready(vi, connection->id) && rdma_accept(connection->id, &param) == 0;
  const auto event =
      sent ? next_event(lock, vi, *connection, Clock::time_point::max()) : std::optional<CmEvent>();
  vi.connection.reset();
  if (event && event->type == RDMA_CM_EVENT_ESTABLISHED) return connected(vi, connection);
  return failed(vi, connection.get(), event ? VIP_TIMEOUT : VIP_ERROR_RESOURCE, true);
}

}  // namespace rocemu::vipl

using namespace rocemu::vipl;

VIP_RETURN VipConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr, VIP_ULONG Timeout,
                          VIP_NET_ADDRESS* RemoteAddr, VIP_VI_ATTRIBUTES* RemoteViAttribs,
                          VIP_CONN_HANDLE* ConnHandle) {
  return guarded([&] {
    const auto local = read_address(LocalAddr);
    Access<Nic> nic(nics, NicHandle);
    if (!nic || !local || local->host != nic->address || RemoteAddr == nullptr ||
        RemoteViAttribs == nullptr || ConnHandle == nullptr) {
      return VIP_INVALID_PARAMETER;
    }
    const std::string& discriminator = local->discriminator;
    if (!nic->served.contains(discriminator)) {
      const uint16_t port = open_listener(*nic, discriminator);
      if (port == 0) return VIP_ERROR_RESOURCE;
      nic->served[discriminator] = port;
    }
    const auto request = wait_for_request(nic, discriminator, deadline_after(Timeout));
    if (nic->dead) return VIP_INVALID_PARAMETER;
    if (request == nullptr) {
      if (Timeout != 0 && !anybody_waits_for(*nic, discriminator)) {
        stop_serving(*nic, discriminator);
      }
      return VIP_TIMEOUT;
    }
    write_address(request->from, RemoteAddr);
    *RemoteViAttribs = request->attributes;
    *ConnHandle = request->handle = requests.add(request);
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle) {
  return guarded([&] {
    const std::shared_ptr<Request> request = requests.find(ConnHandle);
    Access<Vi> vi(vis, ViHandle);
    if (request == nullptr || !vi || request->nic != vi->nic || request->dead) {
      return VIP_INVALID_PARAMETER;
    }
    if (vi->state != VIP_STATE_IDLE) return VIP_INVALID_STATE;
    // The request can still be accepted with another VI, or rejected.
    const VIP_RETURN fits = compare(vi->attributes, request->attributes);
    if (fits != VIP_SUCCESS) return fits;
    request->dead = true;
    requests.remove(ConnHandle);
    return accept_connection(vi.lock, *vi, *request);
  });
}

VIP_RETURN VipConnectReject(VIP_CONN_HANDLE ConnHandle) {
  return guarded([&] {
    Access<Request> request(requests, ConnHandle);
    if (!request) return VIP_INVALID_PARAMETER;
    request->dead = true;
    requests.remove(ConnHandle);
    refuse_connection(*request->nic, *request->connection, Refusal::kByConsumer);
    return VIP_SUCCESS;
  });
}
