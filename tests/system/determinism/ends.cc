// Programs that leave objects or processes behind when they end.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "connection.h"
#include "programs.h"
#include "side.h"

namespace rocemu::determinism {
namespace {

uint16_t receive_port(int socket) {
  uint16_t port = 0;
  receive_all(socket, &port, sizeof port);
  return port;
}

void connect_and_exit(int socket, const std::string& name) {
  CmChannel channel;
  Connection connection(resolve(channel, receive_port(socket)));
  establish(channel, connection);
  connection.send();
  say(name + " sent");
  _exit(0);
}

}  // namespace

void exit_with_messages_under_way(uint32_t count) {
  Device device;
  Side a(device), b(device);
  connect(a, b);
  for (uint32_t i = 0; i < count; ++i) b.post_recv(i);
  for (uint32_t i = 0; i < count; ++i) a.post_send(i);
  b.poll_for(static_cast<int>(count / 3));
  say("a third has come");
  _exit(0);
}

void exit_with_a_receiver_not_ready(uint32_t) {
  Device device;
  Side a(device), b(device);
  connect(a, b);
  b.post_recv(0);
  a.post_send(0);
  a.post_send(1);  // the peer has no receive for it, so it is sent again and again
  a.poll_for(1);
  b.poll_for(1);
  say("the first has come");
  _exit(0);
}

void exit_connected(uint32_t count) {
  const SocketPair link;
  for (uint32_t i = 0; i < count; ++i)
    start_child([&] { connect_and_exit(link.theirs, "client " + std::to_string(i)); });
  CmChannel channel;
  const Listener listener(channel);
  const uint16_t port = listener.port();
  for (uint32_t i = 0; i < count; ++i) send_all(link.ours, &port, sizeof port);
  // One client may end before the next one starts, so the next event can be that of any client.
  for (uint32_t requests = 0, established = 0; requests < count || established < count;) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel.get(), &event) != 0) fail("rdma_get_cm_event");
    say(rdma_event_str(event->event));
    rdma_cm_id* id = event->id;
    if (event->event == RDMA_CM_EVENT_ESTABLISHED) ++established;
    const bool is_request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    rdma_ack_cm_event(event);
    if (!is_request) continue;
    ++requests;
    accept(*new Connection(id));  // never deleted: the connection must remain when the process ends
  }
  wait_for_children(count);
  _exit(0);
}

void exit_after_disconnecting(uint32_t) {
  const SocketPair link;
  start_child([&] {
    CmChannel channel;
    Connection connection(resolve(channel, receive_port(link.theirs)));
    establish(channel, connection);
    connection.send();
    if (rdma_disconnect(connection.id()) != 0) fail("rdma_disconnect");
    say("client disconnects");
    _exit(0);
  });
  CmChannel channel;
  const Listener listener(channel);
  const uint16_t port = listener.port();
  send_all(link.ours, &port, sizeof port);
  Connection connection(channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST));
  accept(connection);
  channel.expect(RDMA_CM_EVENT_ESTABLISHED);
  connection.receive();
  say("server received");
  wait_for_children(1);
}

/// Another thread ends the process while the first thread waits. The last thread to exit closes the
/// contexts.
void exit_in_a_thread(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    start_child([i] {
      std::vector<std::unique_ptr<Device>> devices;
      for (int k = 0; k < 4; ++k) devices.push_back(std::make_unique<Device>());
      CmChannel channel;
      Side a(*devices[0]), b(*devices[3]);
      connect(a, b);
      b.post_recv(0);
      std::thread([&] {
        a.post_send(0);
        say("process " + std::to_string(i) + " has sent");
        _exit(0);
      }).join();
    });
  }
  wait_for_children(count);
}

void kill_a_connected_child(uint32_t) {
  const SocketPair link;
  const pid_t child = start_child([&] {
    CmChannel channel;
    Connection connection(resolve(channel, receive_port(link.theirs)));
    establish(channel, connection);
    connection.send();
    connection.receive();  // never comes
  });
  CmChannel channel;
  const Listener listener(channel);
  const uint16_t port = listener.port();
  send_all(link.ours, &port, sizeof port);
  Connection connection(channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST));
  accept(connection);
  channel.expect(RDMA_CM_EVENT_ESTABLISHED);
  connection.receive();
  kill(child, SIGKILL);
  channel.expect(RDMA_CM_EVENT_DISCONNECTED);
  say("the child's end was disconnected");
  waitpid(child, nullptr, 0);
}

void leave_an_orphan(uint32_t count) {
  const SocketPair link;
  start_child([&] {
    Device device;
    Side a(device), b(device);
    connect(a, b);
    for (const int output : {STDOUT_FILENO, STDERR_FILENO}) close(output);
    prctl(PR_SET_PDEATHSIG, 0);
    alarm(5);  // ends the process even if the NIC has ended
    for (uint32_t i = 0; i < count; ++i) {
      b.post_recv(i);
      a.post_send(i);
      a.poll_for(1);
      b.poll_for(1);
      const char done = 'd';
      if (i == 2) send_all(link.theirs, &done, 1);
    }
  });
  char done = 0;
  receive_all(link.ours, &done, 1);
  say("the child has begun");
  _exit(0);
}

}  // namespace rocemu::determinism
