#include "vipl/connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "vipl/completion.h"
#include "vipl/errors.h"
#include "vipl/queue_pair.h"

namespace rocemu::vipl {
namespace {

void end_of(Nic& nic, Connection& connection) {
  connection.over = true;
  if (connection.closing) return destroy_connection(nic, connection);
  if (connection.vi == nullptr) return;
  Vi& vi = *connection.vi;
  drain(*vi.send.cq);  // messages from before have already arrived
  drain(*vi.recv.cq);
  break_connection(vi, VIP_ERROR_CONN_LOST);
}

void dispatch(Nic& nic, uint64_t key, const CmEvent& event) {
  const auto found = nic.connections.find(key);
  if (found == nic.connections.end()) return;
  const std::shared_ptr<Connection> connection = found->second;
  const bool ends = event.type == RDMA_CM_EVENT_DISCONNECTED ||
                    event.type == RDMA_CM_EVENT_DEVICE_REMOVAL ||
                    (event.type == RDMA_CM_EVENT_TIMEWAIT_EXIT && connection->closing);
  if (connection->vi == nullptr && !connection->closing) connection->events.push_back(event);
  if (ends) end_of(nic, *connection);
  nic.changed.notify_all();
}

void read_connection_events(Nic& nic) {
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(nic.channel, &event) == 0) {
    const bool request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    rdma_cm_id* id = event->id;
    const auto key = reinterpret_cast<uint64_t>(id->context);
    CmEvent copy{event->event, event->status, {}};
    if (event->param.conn.private_data != nullptr) {
      copy.private_data.assign(static_cast<const char*>(event->param.conn.private_data),
                               event->param.conn.private_data_len);
    }
    // The event is acknowledged at once: a thread that destroys the id waits for this, and may hold
    // the lock.
    rdma_ack_cm_event(event);
    const Lock lock(nic.mutex);
    if (nic.dead) {
      if (request) rdma_destroy_id(id);
    } else if (request) {
      take_request(nic, id, copy.private_data);
    } else {
      dispatch(nic, key, copy);
    }
  }
}

void set_nonblocking(int fd) {
  if (::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
    throw std::system_error(errno, std::generic_category());
  }
}

void run(const std::shared_ptr<Nic>& nic) {
  for (;;) {
    pollfd entries[] = {{nic->channel->fd, POLLIN, 0},
                        {nic->context->async_fd, POLLIN, 0},
                        {nic->stop_fd, POLLIN, 0}};
    if (::poll(entries, 3, -1) < 0 && errno != EINTR) return;
    if (entries[2].revents != 0) return;
    if (entries[0].revents != 0) read_connection_events(*nic);
    if (entries[1].revents != 0) read_device_events(*nic);
    // The thread ends, since the descriptors of a removed device stay readable.
    if (((entries[0].revents | entries[1].revents) & (POLLERR | POLLHUP | POLLNVAL)) != 0) return;
  }
}

}  // namespace

void start_event_thread(Nic& nic) {
  nic.stop_fd = ::eventfd(0, EFD_CLOEXEC);
  nic.channel = rdma_create_event_channel();
  if (nic.stop_fd < 0 || nic.channel == nullptr) {
    throw std::system_error(errno, std::generic_category());
  }
  set_nonblocking(nic.channel->fd);
  set_nonblocking(nic.context->async_fd);
  nic.event_thread = std::thread([self = nic.shared_from_this()] { run(self); });
}

std::shared_ptr<Connection> adopt_connection(Nic& nic, rdma_cm_id* id) {
  auto connection = std::make_shared<Connection>();
  connection->key = ++nic.last_id;
  connection->id = id;
  id->context = reinterpret_cast<void*>(connection->key);
  nic.connections[connection->key] = connection;
  return connection;
}

std::shared_ptr<Connection> make_connection(Nic& nic) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(nic.channel, &id, nullptr, RDMA_PS_TCP) != 0) return nullptr;
  return adopt_connection(nic, id);
}

void destroy_connection(Nic& nic, Connection& connection) {
  rdma_destroy_id(connection.id);
  connection.id = nullptr;
  nic.connections.erase(connection.key);
}

void refuse_connection(Nic& nic, Connection& connection, Refusal why) {
  const std::string data = to_bytes(why);
  rdma_reject(connection.id, data.data(), static_cast<uint8_t>(data.size()));
  destroy_connection(nic, connection);
}

std::optional<CmEvent> next_event(Lock& lock, const Vi& vi, Connection& connection,
                                  Clock::time_point deadline) {
  const auto ready = [&] {
    return !connection.events.empty() || vi.nic->dead || vi.dead || vi.canceled;
  };
  if (deadline == Clock::time_point::max()) {
    vi.nic->changed.wait(lock, ready);
  } else {
    vi.nic->changed.wait_until(lock, deadline, ready);
  }
  if (connection.events.empty() || vi.nic->dead || vi.dead || vi.canceled) return std::nullopt;
  CmEvent event = std::move(connection.events.front());
  connection.events.pop_front();
  return event;
}

void begin(Vi& vi) {
  vi.state = VIP_STATE_CONNECT_PENDING;
  vi.canceled = false;
}

VIP_RETURN connected(Vi& vi, const std::shared_ptr<Connection>& connection) {
  vi.connection = connection;
  connection->vi = &vi;
  vi.state = VIP_STATE_CONNECTED;
  vi.nic->changed.notify_all();
  // If the connection has ended in the meantime, its end is reported now.
  if (connection->over) break_connection(vi, VIP_ERROR_CONN_LOST);
  return VIP_SUCCESS;
}

VIP_RETURN failed(Vi& vi, Connection* connection, VIP_RETURN why, bool qp_used) {
  Nic& nic = *vi.nic;
  if (nic.dead || vi.dead) return VIP_INVALID_PARAMETER;  // everything was destroyed
  if (connection != nullptr && connection->id != nullptr) destroy_connection(nic, *connection);
  // The VI gets a new QP, because the peer may remember the number of the old one, although the
  // connection was not established.
  if (qp_used && !renew_qp(vi)) why = VIP_ERROR_RESOURCE;
  vi.state = VIP_STATE_IDLE;
  nic.changed.notify_all();
  return vi.canceled ? VIP_ERROR_RESOURCE : why;
}

rdma_conn_param parameters(const Vi& vi, const std::string& private_data) {
  constexpr int kReadsAtOnce = 4;
  rdma_conn_param param{};
  param.private_data = private_data.data();
  param.private_data_len = static_cast<uint8_t>(private_data.size());
  param.qp_num = vi.qp->qp_num;
  param.responder_resources =
      static_cast<uint8_t>(std::min(kReadsAtOnce, vi.nic->device.max_qp_rd_atom));
  param.initiator_depth =
      static_cast<uint8_t>(std::min(kReadsAtOnce, vi.nic->device.max_qp_init_rd_atom));
  param.retry_count = 7;
  return param;
}

}  // namespace rocemu::vipl
