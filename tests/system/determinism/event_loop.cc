// One thread that waits for several descriptors: completion channels, asynchronous events, rdma_cm
// events, a pipe, a timer. Meanwhile other processes send, and a CQ overruns.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "connection.h"
#include "programs.h"
#include "side.h"

namespace rocemu::determinism {
namespace {

constexpr uint32_t kSides = 3;
constexpr uint32_t kTicks = 10;
constexpr uint32_t kPipeWrites = 5;
constexpr long kMillisecond = 1'000'000;  // ns

/// Waits for these descriptors and returns those that can be read, in the order that the system
/// call reports.
using Wait = std::function<std::vector<int>(const std::vector<int>&)>;

void sleep_for(long ns) {
  const timespec time{0, ns};
  nanosleep(&time, nullptr);
}

/// Sends on all its queue pairs in turn.
void send_bursts(int socket, uint32_t messages) {
  Device device("rocemu1");
  std::vector<std::unique_ptr<Side>> sides;
  for (uint32_t i = 0; i < kSides; ++i) {
    sides.push_back(std::make_unique<Side>(device));
    connect_over(*sides.back(), socket);
  }
  for (uint32_t i = 0; i < messages; ++i) {
    for (auto& side : sides) side->post_send(i);
    if (i % 4 == 3) sleep_for(kMillisecond);
  }
  for (auto& side : sides) side->poll_for(static_cast<int>(messages));
}

void write_now_and_then(int pipe) {
  for (uint32_t i = 0; i < kPipeWrites; ++i) {
    sleep_for(2 * kMillisecond);
    const char byte = 'p';
    send_all(pipe, &byte, 1);
  }
}

void connect_and_leave(int socket) {
  uint16_t port = 0;
  receive_all(socket, &port, sizeof port);
  CmChannel channel;
  Connection connection(resolve(channel, port));
  establish(channel, connection);
  connection.send();
  rdma_disconnect(connection.id());
  channel.expect(RDMA_CM_EVENT_DISCONNECTED);
}

class Loop {
 public:
  /// If `empties` is true, descriptors are read until they are empty, which edge-triggered epoll
  /// needs.
  Loop(uint32_t messages, Wait wait, bool empties = false)
      : messages_(messages), wait_(std::move(wait)), empties_(empties) {}

  void run();

 private:
  // Return whether there was something to read.
  bool on_completions(uint32_t number);
  bool on_async_event();
  bool on_cm_event();
  bool on_pipe();
  bool on_timer();
  bool nothing() {
    note("nothing");
    return false;
  }
  void overrun(Device& device);

  void add(int fd, const std::string& name, std::function<bool()> handler) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    descriptors_.push_back(fd);
    handlers_[fd] = {name, std::move(handler)};
  }
  void remove(int fd) { std::erase(descriptors_, fd); }
  void note(const std::string& what) { line_ += " " + what; }

  struct Handler {
    std::string name;
    std::function<bool()> work;
  };

  const uint32_t messages_;
  const Wait wait_;
  const bool empties_;
  std::vector<int> descriptors_;
  std::map<int, Handler> handlers_;
  std::string line_;

  std::unique_ptr<Device> device_;
  std::unique_ptr<CmChannel> cm_;
  std::vector<ibv_comp_channel*> channels_;
  std::vector<std::unique_ptr<Side>> sides_;
  std::unique_ptr<Connection> connection_;
  int pipe_ = -1, timer_ = -1;
  uint32_t received_ = 0, ticks_ = 0;
  bool async_done_ = false, pipe_done_ = false, cm_done_ = false;
};

void Loop::run() {
  const SocketPair for_sender, for_client;
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) fail("pipe");
  start_child([&] { send_bursts(for_sender.theirs, messages_); });
  start_child([&] { write_now_and_then(pipe_ends[1]); });
  start_child([&] {
    close(pipe_ends[1]);
    connect_and_leave(for_client.theirs);
  });
  close(pipe_ends[1]);
  pipe_ = pipe_ends[0];

  device_ = std::make_unique<Device>();
  for (uint32_t i = 0; i < kSides; ++i) {
    channels_.push_back(ibv_create_comp_channel(device_->context));
    if (channels_.back() == nullptr) fail("ibv_create_comp_channel");
    Side::Options options;
    options.channel = channels_.back();
    sides_.push_back(std::make_unique<Side>(*device_, options));
    for (uint32_t k = 0; k < messages_; ++k) sides_.back()->post_recv(k);
    if (ibv_req_notify_cq(sides_.back()->cq(), 0) != 0) fail("ibv_req_notify_cq");
    add(channels_[i]->fd, "channel " + std::to_string(i), [this, i] { return on_completions(i); });
  }
  cm_ = std::make_unique<CmChannel>();
  auto listener = std::make_unique<Listener>(*cm_);
  timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  add(device_->context->async_fd, "async", [this] { return on_async_event(); });
  add(cm_->get()->fd, "cm", [this] { return on_cm_event(); });
  add(pipe_, "pipe", [this] { return on_pipe(); });
  add(timer_, "timer", [this] { return on_timer(); });

  for (auto& side : sides_) connect_over(*side, for_sender.ours);
  const uint16_t port = listener->port();
  send_all(for_client.ours, &port, sizeof port);
  const itimerspec each{{0, kMillisecond}, {0, kMillisecond}};
  if (timerfd_settime(timer_, 0, &each, nullptr) != 0) fail("timerfd_settime");
  overrun(*device_);

  while (received_ < kSides * messages_ || ticks_ < kTicks || !async_done_ || !pipe_done_ ||
         !cm_done_) {
    line_ = "woken:";
    for (const int fd : wait_(descriptors_)) {
      note(handlers_.at(fd).name + ":");
      while (handlers_.at(fd).work() && empties_) {
      }
    }
    say(line_);
  }
  wait_for_children(3);
  connection_.reset();
  listener.reset();
}

bool Loop::on_completions(uint32_t number) {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channels_[number], &cq, &context) != 0) return nothing();
  ibv_ack_cq_events(cq, 1);
  if (ibv_req_notify_cq(cq, 0) != 0) fail("ibv_req_notify_cq");
  ibv_wc wc{};
  while (sides_[number]->poll(wc)) {
    note(std::to_string(wc.wr_id));
    ++received_;
  }
  return true;
}

bool Loop::on_async_event() {
  ibv_async_event event{};
  if (ibv_get_async_event(device_->context, &event) != 0) return nothing();
  note(ibv_event_type_str(event.event_type));
  async_done_ = async_done_ || event.event_type == IBV_EVENT_CQ_ERR;
  ibv_ack_async_event(&event);
  return true;
}

bool Loop::on_cm_event() {
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(cm_->get(), &event) != 0) return nothing();
  const rdma_cm_event_type type = event->event;
  rdma_cm_id* id = event->id;
  rdma_ack_cm_event(event);
  note(rdma_event_str(type));
  if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
    connection_ = std::make_unique<Connection>(id);
    accept(*connection_);
  } else if (type == RDMA_CM_EVENT_DISCONNECTED) {
    rdma_disconnect(id);
    cm_done_ = true;
  }
  return true;
}

bool Loop::on_pipe() {
  char bytes[16];
  const ssize_t count = read(pipe_, bytes, sizeof bytes);
  if (count < 0) return nothing();
  note(std::to_string(count));
  if (count > 0) return true;
  pipe_done_ = true;
  remove(pipe_);
  return false;
}

bool Loop::on_timer() {
  uint64_t expired = 0;
  if (read(timer_, &expired, sizeof expired) != sizeof expired) return nothing();
  note(std::to_string(expired));
  ticks_ += static_cast<uint32_t>(expired);
  if (ticks_ >= kTicks) remove(timer_);
  return true;
}

/// Overruns a CQ, which causes an asynchronous event.
void Loop::overrun(Device& device) {
  Side::Options options;
  options.cqe = 2;
  auto* a = new Side(device);  // the CQ that overran exists until the process ends
  auto* b = new Side(device, options);
  connect(*a, *b);
  const uint32_t too_many = static_cast<uint32_t>(b->cq()->cqe) + 1;
  for (uint32_t i = 0; i < too_many; ++i) b->post_recv(i);
  for (uint32_t i = 0; i < too_many; ++i) a->post_send(i);
}

/// Registers new descriptors, and removes closed ones.
class Epoll {
 public:
  explicit Epoll(uint32_t events) : events_(events), fd_(epoll_create1(0)) {}

  std::vector<int> operator()(const std::vector<int>& descriptors) {
    for (const int fd : descriptors) {
      if (std::ranges::find(known_, fd) != known_.end()) continue;
      epoll_event event{};
      event.events = events_;
      event.data.fd = fd;
      if (epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
    }
    for (const int fd : known_) {
      if (std::ranges::find(descriptors, fd) == descriptors.end())
        epoll_ctl(fd_, EPOLL_CTL_DEL, fd, nullptr);
    }
    known_ = descriptors;
    epoll_event events[8];
    const int count = epoll_wait(fd_, events, 8, -1);
    if (count < 0) fail("epoll_wait");
    std::vector<int> ready;
    for (int i = 0; i < count; ++i) ready.push_back(events[i].data.fd);
    return ready;
  }

 private:
  uint32_t events_;
  int fd_;
  std::vector<int> known_;
};

std::vector<int> wait_with_poll(const std::vector<int>& descriptors) {
  std::vector<pollfd> entries;
  for (const int fd : descriptors) entries.push_back({fd, POLLIN, 0});
  if (::poll(entries.data(), entries.size(), -1) < 0) fail("poll");
  std::vector<int> ready;
  for (const pollfd& entry : entries) {
    if (entry.revents != 0) ready.push_back(entry.fd);
  }
  return ready;
}

std::vector<int> wait_with_select(const std::vector<int>& descriptors) {
  fd_set set;
  FD_ZERO(&set);
  int highest = -1;
  for (const int fd : descriptors) {
    FD_SET(fd, &set);
    highest = std::max(highest, fd);
  }
  if (select(highest + 1, &set, nullptr, nullptr, nullptr) < 0) fail("select");
  std::vector<int> ready;
  for (const int fd : descriptors) {
    if (FD_ISSET(fd, &set)) ready.push_back(fd);
  }
  return ready;
}

}  // namespace

void epoll_loop(uint32_t messages) {
  Loop(messages, Epoll(EPOLLIN)).run();
}

void edge_triggered_loop(uint32_t messages) {
  Loop(messages, Epoll(EPOLLIN | EPOLLET), /*empties=*/true).run();
}

void poll_loop(uint32_t messages) {
  Loop(messages, wait_with_poll).run();
}

void select_loop(uint32_t messages) {
  Loop(messages, wait_with_select).run();
}

}  // namespace rocemu::determinism
