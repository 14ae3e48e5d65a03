// Threads that create objects, connect, and wait for each other at the same time.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "connection.h"
#include "programs.h"
#include "side.h"

namespace rocemu::determinism {
namespace {

void exchange(Side& a, Side& b, uint32_t number) {
  b.post_recv(number);
  a.post_send(number);
  a.poll_for(1);
  b.poll_for(1);
}

void run_threads(uint32_t count, const std::function<void(uint32_t)>& work) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
}

void serve_in_threads(CmChannel& channel, uint32_t count) {
  std::vector<std::thread> threads;
  for (uint32_t requests = 0, established = 0; requests < count || established < count;) {
    rdma_cm_event* event = nullptr;
    if (rdma_get_cm_event(channel.get(), &event) != 0) fail("rdma_get_cm_event");
    rdma_cm_id* id = event->id;
    const rdma_cm_event_type type = event->event;
    rdma_ack_cm_event(event);
    say(std::string("server: ") + rdma_event_str(type));
    if (type == RDMA_CM_EVENT_ESTABLISHED) ++established;
    if (type != RDMA_CM_EVENT_CONNECT_REQUEST) continue;
    threads.emplace_back([id, number = requests] {
      Connection connection(id);
      accept(connection);
      connection.receive();
      say("server's thread " + std::to_string(number) + " received");
      connection.send();
      connection.receive();
    });
    ++requests;
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

void create_in_threads(uint32_t count) {
  Device device;
  run_threads(count, [&](uint32_t number) {
    std::string line = "thread " + std::to_string(number) + ":";
    for (uint32_t i = 0; i < 3; ++i) {
      Side a(device), b(device);
      line += " " + std::to_string(a.qp()->qp_num) + "," + std::to_string(b.qp()->qp_num);
      connect(a, b);
      exchange(a, b, i);
    }
    say(line);
  });
}

void connect_in_threads(uint32_t count) {
  const SocketPair link;
  start_child([&] {
    uint16_t port = 0;
    receive_all(link.theirs, &port, sizeof port);
    run_threads(count, [&](uint32_t number) {
      CmChannel channel;
      Connection connection(resolve(channel, port));
      establish(channel, connection);
      connection.send();
      connection.receive();
      say("client's thread " + std::to_string(number) + " has an answer");
      connection.send();
    });
  });
  CmChannel channel;
  const Listener listener(channel);
  const uint16_t port = listener.port();
  send_all(link.ours, &port, sizeof port);
  serve_in_threads(channel, count);
  wait_for_children(1);
}

void conditions(uint32_t count) {
  constexpr uint32_t kJobs = 20;
  Device device;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<uint32_t> jobs;
  uint32_t done = 0;
  bool is_over = false;
  std::thread dispatcher([&] {
    for (uint32_t job = 0; job < kJobs; ++job) {
      std::unique_lock lock(mutex);
      jobs.push_back(job);
      changed.notify_all();
      changed.wait(lock, [&] { return done + count > job; });
    }
    std::unique_lock lock(mutex);
    is_over = true;
    changed.notify_all();
  });
  run_threads(count, [&](uint32_t number) {
    Side a(device), b(device);
    connect(a, b);
    for (;;) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return !jobs.empty() || is_over; });
      if (jobs.empty()) return;
      const uint32_t job = jobs.front();
      jobs.pop_front();
      lock.unlock();
      exchange(a, b, job);
      lock.lock();
      say("job " + std::to_string(job) + " by thread " + std::to_string(number));
      ++done;
      changed.notify_all();
    }
  });
  dispatcher.join();
}

void contended_mutex(uint32_t count) {
  Device device;
  Side a(device), b(device);
  connect(a, b);
  std::mutex mutex;
  std::string order = "order:";
  run_threads(count, [&](uint32_t number) {
    for (uint32_t i = 0; i < 3; ++i) {
      const std::lock_guard lock(mutex);
      exchange(a, b, i);
      order += " " + std::to_string(number);
    }
  });
  say(order);
}

void poll_under_a_lock(uint32_t count) {
  constexpr uint32_t kMessages = 8;
  Device device;
  Side a(device), b(device);
  connect(a, b);
  std::mutex mutex;
  uint32_t posted = 0, sent = 0, received = 0;
  std::string order = "posted by:";
  std::thread poller([&] {
    // This thread releases the mutex only for a moment. It polls empty CQs with the mutex, never
    // without it.
    for (;;) {
      const std::lock_guard lock(mutex);
      ibv_wc wc{};
      while (a.poll(wc)) ++sent;
      while (b.poll(wc)) ++received;
      if (sent == count * kMessages && received == sent) return;
    }
  });
  run_threads(count, [&](uint32_t number) {
    for (uint32_t i = 0; i < kMessages; ++i) {
      const std::lock_guard lock(mutex);
      b.post_recv(posted);
      a.post_send(posted);
      ++posted;
      order += " " + std::to_string(number);
    }
  });
  poller.join();
  say(order);
}

// Each thread takes the lock as soon as the other one releases it, polls one CQ and then the other,
// and finds nothing while the sender sleeps. Taking the lock in turn does not count as progress, so
// time advances.
void several_poll_under_a_lock(uint32_t count) {
  Device device;
  Side a(device), b(device);
  connect(a, b);
  b.post_recv(0);
  std::mutex mutex;
  uint32_t sent = 0, received = 0;
  std::string order = "found by:";
  std::thread sender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    a.post_send(0);
  });
  run_threads(count, [&](uint32_t number) {
    for (bool done = false; !done;) {
      for (Side* side : {&a, &b}) {
        const std::lock_guard lock(mutex);
        ibv_wc wc{};
        if (side->poll(wc)) {
          ++(side == &a ? sent : received);
          order += " " + std::to_string(number);
        }
        done = sent == 1 && received == 1;
      }
    }
  });
  sender.join();
  say(order);
}

namespace {

volatile sig_atomic_t handled = 0;

void count_signal(int) {
  handled = handled + 1;
}

}  // namespace

void signals(uint32_t messages) {
  // A thread waits for SIGUSR1. SIGUSR2 interrupts any call.
  sigset_t waited;
  sigemptyset(&waited);
  sigaddset(&waited, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &waited, nullptr);
  struct sigaction action {};
  action.sa_handler = count_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR2, &action, nullptr);
  const pid_t parent = getpid();
  const SocketPair link;
  start_child([&] {
    Device device;
    Side side(device);
    connect_over(side, link.theirs);
    for (uint32_t i = 0; i < messages; ++i) {
      side.post_recv(i);
      side.post_send(i);
      kill(parent, SIGUSR2);
      side.poll_for(1);  // sent
      kill(parent, SIGUSR1);
      side.poll_for(1);  // answered
    }
  });
  Device device;
  Side side(device);
  for (uint32_t i = 0; i < messages; ++i) side.post_recv(i);
  connect_over(side, link.ours);
  for (uint32_t i = 0; i < messages; ++i) {
    int number = 0;
    sigwait(&waited, &number);
    side.poll_for(1);
    say("message " + std::to_string(i) + ", " + std::to_string(handled) + " signals handled");
    side.post_send(i);
    side.poll_for(1);
  }
  wait_for_children(1);
}

}  // namespace rocemu::determinism
