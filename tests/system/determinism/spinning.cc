// Threads that spin on each other's flags between messages.
#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "programs.h"
#include "relax.h"
#include "side.h"

namespace rocemu::determinism {
namespace {

constexpr uint32_t kRounds = 3;

using Relax = void (*)();

void yield() {
  sched_yield();
}
void pause() {
  relax();
}

struct Ends {
  explicit Ends(Device& device) : a(device), b(device) { connect(a, b); }

  void exchange(uint32_t number) {
    b.post_recv(number);
    a.post_send(number);
    a.poll_for(1);
    b.poll_for(1);
  }

  Side a, b;
};

/// Each thread waits for its turn, sends a message to itself, and gives the turn to the next.
void pass_turns(uint32_t count, Relax relax) {
  Device device;
  std::vector<std::unique_ptr<Ends>> ends;
  for (uint32_t i = 0; i < count; ++i) ends.push_back(std::make_unique<Ends>(device));
  std::atomic<uint32_t> turn = 0;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      for (uint32_t round = 0; round < kRounds; ++round) {
        while (turn != round * count + i) relax();
        ends[i]->exchange(round);
        say("thread " + std::to_string(i) + " round " + std::to_string(round));
        ++turn;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

using Cq = std::unique_ptr<ibv_cq, decltype([](ibv_cq* cq) { ibv_destroy_cq(cq); })>;

/// Two processes, each of which waits until the other's bytes appear in its memory. They poll the
/// completions at the end.
void spin_on_memory(uint32_t messages, ibv_wr_opcode opcode) {
  SocketPair link;
  const auto work = [&](int socket, bool begins) {
    Device device;
    const Cq received(ibv_create_cq(device.context, 64, nullptr, nullptr, 0));
    Side side(device, {.recv_cq = received.get()});
    if (opcode == IBV_WR_SEND) {
      for (uint32_t number = 0; number < messages; ++number) side.post_recv(number);
    }
    connect_over(side, socket);
    for (uint32_t number = 1; number <= messages; ++number) {
      if ((number % 2 == 1) == begins) {
        side.last_byte_to_send() = static_cast<uint8_t>(number);
        side.post_send(number, opcode);
        side.poll_for(1);
      } else {
        while (side.last_byte_that_comes() != number) {
        }
        say((begins ? "first saw " : "second saw ") + std::to_string(number));
      }
    }
    ibv_wc wc[64];
    say("received " + std::to_string(ibv_poll_cq(received.get(), 64, wc)));
  };
  start_child([&] { work(link.theirs, false); });
  work(link.ours, true);
  wait_for_children(1);
}

}  // namespace

void spin_with_yield(uint32_t count) {
  pass_turns(count, yield);
}

void spin_with_pause(uint32_t count) {
  pass_turns(count, pause);
}

void spinning_barrier(uint32_t count) {
  Device device;
  std::vector<std::unique_ptr<Ends>> ends;
  for (uint32_t i = 0; i < count; ++i) ends.push_back(std::make_unique<Ends>(device));
  std::atomic<uint32_t> arrived = 0;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      for (uint32_t round = 0; round < kRounds; ++round) {
        ends[i]->exchange(round);
        ++arrived;
        while (arrived < (round + 1) * count) yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  say("all arrived " + std::to_string(kRounds) + " times");
}

/// Threads share the work of polling, as in mercury's HG_Progress: one polls and has the lock, and
/// the others check in a long loop, without any call, whether their messages have arrived.
void spin_beside_progress(uint32_t count) {
  constexpr uint32_t kMessages = 10;
  Device device;
  std::vector<std::unique_ptr<Ends>> ends;
  for (uint32_t i = 0; i < count; ++i) ends.push_back(std::make_unique<Ends>(device));
  std::atomic<bool> is_locked = false;
  std::array<std::atomic<uint32_t>, 40> arrived{};  // only the first `count` are of threads
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      for (uint32_t number = 1; number <= kMessages; ++number) {
        ends[i]->b.post_recv(number);
        ends[i]->a.post_send(number);
        uint32_t all = 0;
        while (arrived[i] != number) {
          all = 0;
          for (const std::atomic<uint32_t>& one : arrived) all += one;
          if (is_locked.exchange(true)) continue;
          for (uint32_t j = 0; j < count; ++j) {
            ibv_wc wc;
            while (ends[j]->a.poll(wc)) {
            }
            while (ends[j]->b.poll(wc)) ++arrived[j];
          }
          is_locked = false;
        }
        if (all > count * kMessages) fail("more messages than were sent");
      }
      say("thread " + std::to_string(i) + " has all");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void spin_on_writes(uint32_t messages) {
  spin_on_memory(messages, IBV_WR_RDMA_WRITE);
}

void spin_on_sends(uint32_t messages) {
  spin_on_memory(messages, IBV_WR_SEND);
}

/// Spins on a flag that no thread sets.
void spin_for_ever(uint32_t count) {
  Device device;
  std::atomic<bool> flag = false;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      while (!flag) pause();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// When a thread of a process executes a program, Linux ends the other threads, even if the process
/// is traced.
void execute_beside_a_spinner(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    start_child([i] {
      Device device;
      std::atomic<bool> flag = false;
      std::thread spinner([&] {
        while (!flag) pause();
      });
      usleep(10'000);
      std::thread([i] {
        const std::string number = std::to_string(i);
        execl("/proc/self/exe", "determinism_programs", "open_one", number.c_str(), nullptr);
        fail("execl");
      }).join();
      spinner.join();
    });
  }
  wait_for_children(count);
}

}  // namespace rocemu::determinism
