// Connections over rdma_cm. All NICs' events are read by one thread each; a thread that sets a
// connection up sleeps until the events of its id come. With the NIC locked.
#pragma once

#include <optional>

#include "vipl/cm_messages.h"
#include "vipl/objects.h"

namespace rocemu::vipl {

/// Throws std::system_error.
void start_event_thread(Nic& nic);

/// Null if there cannot be one.
std::shared_ptr<Connection> make_connection(Nic& nic);
/// For an id that a listener's event brought.
std::shared_ptr<Connection> adopt_connection(Nic& nic, rdma_cm_id* id);
void destroy_connection(Nic& nic, Connection& connection);
void refuse_connection(Nic& nic, Connection& connection, Refusal why);

/// A request came to a listener: listen.cc.
void take_request(Nic& nic, rdma_cm_id* id, const std::string& private_data);

/// Nothing if the time is over, the NIC is closed or the VI's connection is cancelled.
std::optional<CmEvent> next_event(Lock& lock, const Vi& vi, Connection& connection,
                                  Clock::time_point deadline);

/// An idle VI begins to connect, and comes to its end: connected, or idle again.
void begin(Vi& vi);
VIP_RETURN connected(Vi& vi, const std::shared_ptr<Connection>& connection);
VIP_RETURN failed(Vi& vi, Connection* connection, VIP_RETURN why, bool qp_used);

rdma_conn_param parameters(const Vi& vi, const std::string& private_data);

/// VipConnectRequest and its likes, once what they were given is known to be right. The VI is
/// pending before, and afterwards connected or idle.
VIP_RETURN request_connection(Lock& lock, Vi& vi, const NetAddress& local, const NetAddress& remote,
                              Clock::time_point deadline, bool of_peer, VIP_VI_ATTRIBUTES* theirs);
VIP_RETURN accept_connection(Lock& lock, Vi& vi, Request& request);
/// What VipConnectAccept says of two VIs that do not fit.
VIP_RETURN compare(const VIP_VI_ATTRIBUTES& ours, const VIP_VI_ATTRIBUTES& theirs);

/// 0 if there is no port.
uint16_t open_listener(Nic& nic, const std::string& discriminator);
void close_listener(Nic& nic, uint16_t port);

}  // namespace rocemu::vipl
