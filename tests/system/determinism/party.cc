#include "tests/system/determinism/party.h"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace rocemu::determinism {
namespace {

constexpr uint32_t kReceives = 8;  // receives that are posted on each link
constexpr int kCqe = 512;

void compute(uint32_t turns) {
  for (volatile uint32_t turn = 0; turn < turns;) turn = turn + 1;
}

void sleep_100_us() {
  const timespec time{0, 100'000};
  nanosleep(&time, nullptr);
}

}  // namespace

Party::Party(World& world, ProcessState& process, uint32_t number)
    : world_(world), process_(process), number_(number) {}

void Party::run() {
  set_up();
  pthread_barrier_wait(&world_.memory->all_threads);
  for (const Act& act : world_.program.acts) {
    if (!world_.program.is_in(act, number_)) continue;
    line_ = "thread " + std::to_string(number_) + " act " + std::to_string(act.number) + ":";
    do_part(act);
    say(line_);
  }
  pthread_barrier_wait(&world_.memory->all_threads);
  tear_down();
}

/// All threads create their links in the same order.
void Party::set_up() {
  world_.memory->pids[number_] = getpid();
  world_.memory->tids[number_] = static_cast<pid_t>(syscall(SYS_gettid));
  const Thread& thread = world_.program.threads[number_];
  device_ = process_.device;
  if (thread.has_own_context) {
    own_device_ = std::make_unique<Device>(thread.device.c_str());
    device_ = own_device_.get();
  }
  channel_ = ibv_create_comp_channel(device_->context);
  if (channel_ == nullptr) fail("ibv_create_comp_channel");
  cq_ = ibv_create_cq(device_->context, kCqe, nullptr, channel_, 0);
  if (cq_ == nullptr) fail("ibv_create_cq");
  for (size_t i = 0; i < world_.links.size(); ++i) {
    const Link& link = world_.links[i];
    if (link.from != number_ && link.to != number_) continue;
    Side::Options options;
    options.cq = cq_;
    End end{.link = i, .side = std::make_unique<Side>(*device_, options)};
    for (uint32_t k = 0; link.to == number_ && k < kReceives; ++k) end.side->post_recv(i);
    const SocketPair& sockets = world_.link_sockets[i];
    connect_over(*end.side, link.from == number_ ? sockets.ours : sockets.theirs);
    ends_.push_back(std::move(end));
  }
}

void Party::tear_down() {
  ends_.clear();
  ibv_destroy_cq(cq_);
  ibv_destroy_comp_channel(channel_);
}

void Party::do_part(const Act& act) {
  switch (act.kind) {
    case Kind::kOneSided:
      return one_sided(act);
    case Kind::kMutex:
      return lock(act);
    case Kind::kSleep:
      return sleep(act);
    case Kind::kTimer:
      return wait_for_timer(act);
    case Kind::kYield:
      for (uint32_t i = 0; i < act.count; ++i) sched_yield();
      return;
    case Kind::kObjects:
      return make_objects(act);
    case Kind::kEmptyPolls:
      return poll_in_vain(act);
    case Kind::kClock:
      return read_clock(act);
    case Kind::kRandom:
      return read_random(act);
    case Kind::kCompute:
      return compute(100 * act.time_us);
    case Kind::kFork:
      return fork_child(act);
    case Kind::kMessage:
    case Kind::kPipe:
    case Kind::kEventFd:
    case Kind::kSemaphore:
    case Kind::kCondition:
    case Kind::kSpin:
    case Kind::kSignal:
    case Kind::kConnection:
    case Kind::kGather:
      return do_part_of_two(act);
  }
}

void Party::do_part_of_two(const Act& act) {
  switch (act.kind) {
    case Kind::kMessage:
      return message(act);
    case Kind::kPipe:
      return pass_byte(act);
    case Kind::kEventFd:
      return pass_event(act);
    case Kind::kSemaphore:
      return pass_semaphore(act);
    case Kind::kCondition:
      return pass_condition(act);
    case Kind::kSpin:
      return pass_flag(act);
    case Kind::kSignal:
      return pass_signal(act);
    case Kind::kConnection:
      return act.to == number_ ? serve_connection(act) : make_connection(act);
    case Kind::kGather:
      return gather(act);
    default:
      return;
  }
}

Party::End& Party::end_of(uint32_t from, uint32_t to) {
  return *std::ranges::find_if(ends_, [&](const End& end) {
    const Link& link = world_.links[end.link];
    return link.from == from && link.to == to;
  });
}

// ---- Completions ----

/// Reads everything that has arrived, from any source.
void Party::drain() {
  ibv_wc wc{};
  for (;;) {
    const int count = ibv_poll_cq(cq_, 1, &wc);
    if (count < 0) fail("ibv_poll_cq");
    if (count == 0) return;
    if (wc.status != IBV_WC_SUCCESS)
      fail(std::string("completion: ") + ibv_wc_status_str(wc.status));
    End& end = *std::ranges::find(ends_, static_cast<size_t>(wc.wr_id), &End::link);
    if ((wc.opcode & IBV_WC_RECV) != 0) {
      ++end.received;
      end.side->post_recv(wc.wr_id);
      note("r" + std::to_string(wc.wr_id));
    } else {
      ++end.sent;
      note("s" + std::to_string(wc.wr_id));
    }
  }
}

void Party::arm() {
  if (ibv_req_notify_cq(cq_, 0) != 0) fail("ibv_req_notify_cq");
}

void Party::take_event() {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channel_, &cq, &context) != 0) fail("ibv_get_cq_event");
  ibv_ack_cq_events(cq, 1);
  note("e");
}

void Party::wait_for_completions(const std::function<bool()>& is_done, CqWait how) {
  const bool is_polling = how <= CqWait::kPollAndSleep;
  for (uint32_t turns = 0;; ++turns) {
    if (!is_polling) arm();
    drain();
    if (is_done()) {
      note("after " + std::to_string(turns));
      return;
    }
    if (how == CqWait::kPollAndYield) sched_yield();
    if (how == CqWait::kPollAndSleep) sleep_100_us();
    if (!is_polling) wait_at_channel(how);
  }
}

void Party::wait_at_channel(CqWait how) {
  if (how == CqWait::kChannelAndPoll || how == CqWait::kChannelWithTimeout) {
    pollfd entry{channel_->fd, POLLIN, 0};
    const int count = poll(&entry, 1, how == CqWait::kChannelAndPoll ? -1 : 1);
    if (count < 0) fail("poll");
    if (count == 0) return note("timeout");
  } else if (how == CqWait::kChannelAndSelect) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(channel_->fd, &set);
    if (select(channel_->fd + 1, &set, nullptr, nullptr, nullptr) != 1) fail("select");
  } else if (how == CqWait::kChannelAndEpoll) {
    const int poller = epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(poller, EPOLL_CTL_ADD, channel_->fd, &event) != 0) fail("epoll_ctl");
    if (epoll_wait(poller, &event, 1, -1) != 1) fail("epoll_wait");
    close(poller);
  }
  take_event();
}

void Party::send(const Act& act) {
  End& end = end_of(act.from, act.to);
  for (uint32_t i = 0; i < act.count; ++i) {
    end.side->post_send(end.link, (act.variant + i) % 4 == 3 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND);
    ++end.to_send;
  }
}

void Party::message(const Act& act) {
  End& end = end_of(act.from, act.to);
  if (act.from == number_) {
    send(act);
    wait_for_completions([&] { return end.sent >= end.to_send; }, act.wait_of_from);
  } else {
    end.to_receive += act.count;
    wait_for_completions([&] { return end.received >= end.to_receive; }, act.wait_of_to);
  }
}

void Party::one_sided(const Act& act) {
  if (act.from != number_) return note("is read or written");
  End& end = end_of(act.from, act.to);
  for (uint32_t i = 0; i < act.count; ++i)
    end.side->post_send(end.link,
                        (act.variant + i) % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ);
  end.to_send += act.count;
  wait_for_completions([&] { return end.sent >= end.to_send; }, act.wait_of_from);
}

void Party::poll_in_vain(const Act& act) {
  for (uint32_t i = 0; i < 3 * act.count; ++i) {
    drain();
    note(std::to_string(i));
  }
}

}  // namespace rocemu::determinism
