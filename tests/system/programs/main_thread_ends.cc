// A program whose main thread ends (pthread_exit(3)) while another thread uses a QP:
// main_thread_ends WHAT, where WHAT is one of
//   uses   the other thread opens, registers and transfers
//   waits  the other thread waits for an asynchronous event that does not arrive
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/system/memory/party.h"

namespace rocemu::system_test {
namespace {

void wait_for_end_of_main_thread() {
  for (;; usleep(1000)) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("State:\tZ")) return;
  }
}

/// Transfers in both directions between the party's buffer and memory with that region.
void transfer(Party& party, std::vector<uint8_t>& memory, const MrPtr& region, uint8_t value) {
  for (const uint32_t length : {8u, 64u, 4000u, 8000u}) {
    party.buffer.fill(value);
    party.request(IBV_WR_RDMA_WRITE, 0, memory.data(), region, length);
    EXPECT_EQ(std::vector<uint8_t>(length, value),
              std::vector<uint8_t>(memory.begin(), memory.begin() + length));
    std::memset(memory.data(), value + 1, length);
    party.request(IBV_WR_RDMA_READ, 0, memory.data(), region, length);
    EXPECT_EQ(std::vector<uint8_t>(length, uint8_t(value + 1)),
              std::vector<uint8_t>(party.buffer.begin(), party.buffer.begin() + length));
    std::memset(memory.data(), 0, length);
    party.buffer.fill(value);
    party.post_recv(memory.data(), region, length);
    party.send(0, length);
    party.take_received();
    EXPECT_EQ(std::vector<uint8_t>(length, value),
              std::vector<uint8_t>(memory.begin(), memory.begin() + length));
  }
}

void use(Party& party) {
  std::vector<uint8_t> before(8192), after(8192);
  const MrPtr region_before = party.enter(before.data(), before.size());
  wait_for_end_of_main_thread();
  transfer(party, before, region_before, 1);
  transfer(party, after, party.enter(after.data(), after.size()), 11);
  Party second(1);
  transfer(second, after, second.enter(after.data(), after.size()), 21);
}

}  // namespace
}  // namespace rocemu::system_test

int main(int argc, char** argv) {
  using namespace rocemu::system_test;
  const bool waits = argc == 2 && std::strcmp(argv[1], "waits") == 0;
  std::thread([waits] {
    if (waits) {
      const ContextPtr context = open_device(0);
      wait_for_end_of_main_thread();
      ibv_async_event event;
      ibv_get_async_event(context.get(), &event);
    }
    Party party;
    use(party);
    std::puts(testing::Test::HasFailure() ? "wrong" : "right");
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  }).detach();
  pthread_exit(nullptr);
}
