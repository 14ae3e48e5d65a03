// Connections between peers, both of which request: VipConnectPeerRequest, VipConnectPeerDone,
// VipConnectPeerWait.
//
// The peer with the greater address sends the request and the other one waits for it, so that two
// requests cannot cross. A thread does the work of VipConnectRequest, or of VipConnectWait and
// VipConnectAccept.
#include <algorithm>

#include "vipl/completion.h"
#include "vipl/connection.h"

namespace rocemu::vipl {
namespace {

// The interval between two requests: until the peer has made its call, too, its address matches
// nothing.
constexpr std::chrono::milliseconds kAskAgainAfter{5};

VIP_RETURN ask(Lock& lock, Vi& vi, const NetAddress& local, const NetAddress& remote,
               Clock::time_point deadline) {
  for (;;) {
    const VIP_RETURN result =
        request_connection(lock, vi, local, remote, deadline, true, &vi.peer_attributes);
    // After the deadline, VIP_NO_MATCH and VIP_NOT_REACHABLE count as a timeout: the last attempt
    // may have had too little time.
    const bool in_time = Clock::now() < deadline;
    if (!in_time && (result == VIP_NO_MATCH || result == VIP_NOT_REACHABLE)) return VIP_TIMEOUT;
    if (result != VIP_NO_MATCH) return result;
    begin(vi);
    vi.nic->changed.wait_until(lock, std::min(deadline, Clock::now() + kAskAgainAfter),
                               [&] { return vi.canceled || vi.nic->dead; });
    if (vi.canceled || vi.nic->dead) return failed(vi, nullptr, VIP_ERROR_RESOURCE, false);
  }
}

VIP_RETURN wait_for_peer(Lock& lock, Vi& vi, const NetAddress& local, const NetAddress& remote,
                         Clock::time_point deadline) {
  Nic& nic = *vi.nic;
  const uint16_t port = open_listener(nic, local.discriminator);
  if (port == 0) return failed(vi, nullptr, VIP_ERROR_RESOURCE, false);
  Waiter waiter{local.discriminator, &remote, nullptr};
  nic.waiters.push_back(&waiter);
  const auto ready = [&] { return waiter.got != nullptr || nic.dead || vi.canceled; };
  if (deadline == Clock::time_point::max()) {
    nic.changed.wait(lock, ready);
  } else {
    nic.changed.wait_until(lock, deadline, ready);
  }
  nic.waiters.remove(&waiter);
  if (!nic.dead) close_listener(nic, port);
  if (waiter.got == nullptr) return failed(vi, nullptr, VIP_TIMEOUT, false);
  const VIP_RETURN fits = compare(vi.attributes, waiter.got->attributes);
  if (fits != VIP_SUCCESS) {
    const Refusal why = fits == VIP_INVALID_MTU ? Refusal::kMtu : Refusal::kReliability;
    if (!nic.dead) refuse_connection(nic, *waiter.got->connection, why);
    return failed(vi, nullptr, fits, false);
  }
  vi.peer_attributes = waiter.got->attributes;
  return accept_connection(lock, vi, *waiter.got);
}

void connect_peers(const std::shared_ptr<Vi>& vi, const NetAddress& local, const NetAddress& remote,
                   Clock::time_point deadline) {
  Nic& nic = *vi->nic;
  Lock lock(nic.mutex);
  const auto run = local > remote ? ask : wait_for_peer;
  vi->peer_result = vi->canceled ? failed(*vi, nullptr, VIP_ERROR_RESOURCE, false)
                                 : run(lock, *vi, local, remote, deadline);
  vi->peer = Vi::Peer::kOver;
  --nic.peer_threads;
  nic.changed.notify_all();
}

VIP_RETURN take_result(Vi& vi, VIP_VI_ATTRIBUTES* attributes) {
  vi.peer = Vi::Peer::kNone;
  if (vi.peer_result == VIP_SUCCESS) *attributes = vi.peer_attributes;
  return vi.peer_result;
}

}  // namespace
}  // namespace rocemu::vipl

using namespace rocemu::vipl;

VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr,
                                 VIP_NET_ADDRESS* RemoteAddr, VIP_ULONG Timeout) {
  return guarded([&] {
    const auto local = read_address(LocalAddr);
    const auto remote = read_address(RemoteAddr);
    Access<Vi> vi(vis, ViHandle);
    if (!vi || !local || !remote || Timeout == 0 || local->host != vi->nic->address ||
        remote->host.size() != local->host.size() || *local == *remote) {
      return VIP_INVALID_PARAMETER;
    }
    if (vi->state != VIP_STATE_IDLE || vi->peer == Vi::Peer::kPending) return VIP_INVALID_STATE;
    const auto deadline = deadline_after(Timeout);
    begin(*vi);
    try {
      std::thread([object = vi.object, local = *local, remote = *remote, deadline] {
        connect_peers(object, local, remote, deadline);
      }).detach();
    } catch (...) {
      vi->state = VIP_STATE_IDLE;
      throw;
    }
    ++vi->nic->peer_threads;
    vi->peer = Vi::Peer::kPending;
    return VIP_SUCCESS;
  });
}

VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteViAttribs) {
  return guarded([&] {
    Access<Vi> vi(vis, ViHandle);
    if (!vi || RemoteViAttribs == nullptr) return VIP_INVALID_PARAMETER;
    if (vi->peer == Vi::Peer::kNone) return VIP_INVALID_STATE;
    if (vi->peer == Vi::Peer::kPending) return VIP_NOT_DONE;
    return take_result(*vi, RemoteViAttribs);
  });
}

VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* RemoteViAttribs) {
  return guarded([&] {
    Access<Vi> vi(vis, ViHandle);
    if (!vi || RemoteViAttribs == nullptr) return VIP_INVALID_PARAMETER;
    if (vi->peer == Vi::Peer::kNone) return VIP_INVALID_STATE;
    vi->nic->changed.wait(vi.lock, [&] { return vi->peer != Vi::Peer::kPending || vi->dead; });
    if (vi->dead) return VIP_INVALID_PARAMETER;
    if (vi->peer == Vi::Peer::kNone) return VIP_INVALID_STATE;  // another thread took the result
    return take_result(*vi, RemoteViAttribs);
  });
}
