// Connections over rdma_cm. One thread for each NIC reads the NIC's events; a thread that sets up a
// connection sleeps until the events of its id arrive. Functions must be called with the NIC
// locked.
#pragma once

#include <optional>

#include "vipl/cm_messages.h"
#include "vipl/objects.h"

namespace rocemu::vipl {

/// Starts the NIC's thread that reads events. Throws std::system_error.
void start_event_thread(Nic& nic);

/// Creates a connection with a new id. Returns null if that is not possible.
std::shared_ptr<Connection> make_connection(Nic& nic);
/// Creates a connection for an id that came with a listener's event.
std::shared_ptr<Connection> adopt_connection(Nic& nic, rdma_cm_id* id);
void destroy_connection(Nic& nic, Connection& connection);
void refuse_connection(Nic& nic, Connection& connection, Refusal why);

/// Processes a connection request that arrived at a listener (listen.cc).
void take_request(Nic& nic, rdma_cm_id* id, const std::string& private_data);

/// Returns the next event; nothing if the time is over, the NIC is closed or the VI's connection is
/// canceled.
std::optional<CmEvent> next_event(Lock& lock, const Vi& vi, Connection& connection,
                                  Clock::time_point deadline);

/// Begins a connection attempt of an idle VI. connected() or failed() ends it; then the VI is
/// connected, or idle again.
void begin(Vi& vi);
VIP_RETURN connected(Vi& vi, const std::shared_ptr<Connection>& connection);
VIP_RETURN failed(Vi& vi, Connection* connection, VIP_RETURN why, bool qp_used);

rdma_conn_param parameters(const Vi& vi, const std::string& private_data);

/// Requests a connection, for VipConnectRequest and similar functions, after their arguments have
/// been checked. The VI must be pending, and is connected or idle afterwards.
VIP_RETURN request_connection(Lock& lock, Vi& vi, const NetAddress& local, const NetAddress& remote,
                              Clock::time_point deadline, bool of_peer, VIP_VI_ATTRIBUTES* theirs);
VIP_RETURN accept_connection(Lock& lock, Vi& vi, Request& request);
/// Compares the attributes of two VIs. Returns VipConnectAccept's error if the VIs cannot be
/// connected, else VIP_SUCCESS.
VIP_RETURN compare(const VIP_VI_ATTRIBUTES& ours, const VIP_VI_ATTRIBUTES& theirs);

/// Opens a listener and returns its port; 0 if there is no free port.
uint16_t open_listener(Nic& nic, const std::string& discriminator);
void close_listener(Nic& nic, uint16_t port);

}  // namespace rocemu::vipl
