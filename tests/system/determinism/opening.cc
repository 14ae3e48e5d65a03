// Processes and threads that open devices at the same time.
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "programs.h"
#include "side.h"

namespace rocemu::determinism {
namespace {

void open_and_say(const std::string& name, const char* device_name = "rocemu0") {
  Device device(device_name);
  ibv_device_attr attr{};
  if (ibv_query_device(device.context, &attr) != 0) fail("ibv_query_device");
  Side side(device);
  say(name + " has QP " + std::to_string(side.qp()->qp_num));
}

void ping(Side& side, uint32_t messages, bool first) {
  for (uint32_t i = 0; i < messages; ++i) {
    side.post_recv(i);
    if (!first) side.poll_for(1);
    side.post_send(i);
    side.poll_for(first ? 2 : 1);
  }
}

void open_below(const std::string& name, uint32_t depth) {
  size_t children = 0;
  for (const char* branch : {".0", ".1"}) {
    if (depth == 0) break;
    start_child([&] { open_below(name + branch, depth - 1); });
    ++children;
  }
  open_and_say(name);
  wait_for_children(children);
}

}  // namespace

void open_after_fork(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    start_child(
        [i] { open_and_say("child " + std::to_string(i), i % 3 == 2 ? "rocemu1" : "rocemu0"); });
  }
  wait_for_children(count);
}

void open_after_exec(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    start_child([i] {
      const std::string number = std::to_string(i);
      execl("/proc/self/exe", "determinism_programs", "open_one", number.c_str(), nullptr);
      fail("execl");
    });
  }
  wait_for_children(count);
}

void open_one(uint32_t number) {
  open_and_say("program " + std::to_string(number));
}

void open_in_threads(uint32_t count) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i)
    threads.emplace_back([i] { open_and_say("thread " + std::to_string(i)); });
  for (std::thread& thread : threads) thread.join();
}

void open_in_a_tree(uint32_t depth) {
  open_below("root", depth);
}

void pairs_after_fork(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const SocketPair link;
    for (const bool first : {true, false}) {
      start_child([&] {
        Device device;
        Side side(device);
        connect_over(side, first ? link.ours : link.theirs);
        ping(side, 5, first);
        say("pair " + std::to_string(i) + (first ? " first" : " second"));
      });
    }
    close(link.ours);
    close(link.theirs);
  }
  wait_for_children(size_t{2} * count);
}

/// Several threads have opened a device. The last thread executes another program while the first
/// one waits.
void execute_in_a_thread(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    start_child([i] {
      std::vector<std::unique_ptr<Device>> devices;
      for (int k = 0; k < 3; ++k) devices.push_back(std::make_unique<Device>());
      std::thread([i] {
        const std::string number = std::to_string(i);
        execl("/proc/self/exe", "determinism_programs", "open_one", number.c_str(), nullptr);
        fail("execl");
      }).join();
    });
  }
  wait_for_children(count);
}

void fork_and_exec(uint32_t count) {
  Device device;
  Side a(device), b(device);
  connect(a, b);
  for (uint32_t i = 0; i < count; ++i) {
    start_child([i] {
      const std::string number = std::to_string(i);
      execl("/proc/self/exe", "determinism_programs", "open_one", number.c_str(), nullptr);
      fail("execl");
    });
    b.post_recv(i);
    a.post_send(i);
    a.poll_for(1);
    b.poll_for(1);
    say("message " + std::to_string(i));
    if (i % 2 == 1) wait_for_children(2);
  }
  wait_for_children(count % 2);
}

}  // namespace rocemu::determinism
