// Tests that a process's memory is no longer accessed after it has executed another program.
#include "emulator/daemon/memory/memory_reach.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

namespace rocemu::daemon {
namespace {

using engine::MemoryResult;
using engine::RemoteRange;

constexpr size_t kSize = 1 << 20;  // more than the daemon copies without looking

// execve(2): "memory mappings are not preserved". ibv_reg_mr(3) pins the pages of the program that
// calls it, so that a NIC never writes to another one.
TEST(MemoryReach, EndsWhenTheProcessExecutesAnotherProgram) {
  void* const shared_name =
      mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared_name, MAP_FAILED);
  int execute[2], executed[2];  // the child's end of the latter is closed by execve(2)
  ASSERT_EQ(pipe(execute), 0);
  ASSERT_EQ(pipe2(executed, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char byte;
    if (read(execute[0], &byte, 1) == 1) execlp("sleep", "sleep", "1000", nullptr);
    _exit(1);
  }
  close(executed[1]);
  const std::string path = "/proc/" + std::to_string(child) + "/mem";
  const MemoryReach reach(child, UniqueFd(open(path.c_str(), O_RDWR | O_CLOEXEC)), false);
  MemoryReach::Scratch scratch;
  std::vector<uint8_t> bytes(kSize, 1);
  const std::span<uint8_t> own(bytes);
  const std::span<const uint8_t> own_const(bytes);
  const RemoteRange range{reinterpret_cast<uint64_t>(shared_name), kSize};
  const auto write_all = [&] { return reach.write({&range, 1}, {&own_const, 1}, scratch); };
  const auto read_all = [&] { return reach.read({&range, 1}, {&own, 1}, scratch); };
  EXPECT_EQ(write_all(), MemoryResult::kDone);
  EXPECT_EQ(read_all(), MemoryResult::kDone);

  char byte = 0;
  EXPECT_EQ(write(execute[1], &byte, 1), 1);
  EXPECT_EQ(read(executed[0], &byte, 1), 0);
  EXPECT_EQ(write_all(), MemoryResult::kGone);
  EXPECT_EQ(read_all(), MemoryResult::kGone);
  const RemoteRange short_range{range.address, 1};
  const std::span<uint8_t> own_byte = own.first(1);
  EXPECT_EQ(reach.read({&short_range, 1}, {&own_byte, 1}, scratch), MemoryResult::kGone);

  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const int fd : {execute[0], execute[1], executed[0]}) close(fd);
  munmap(shared_name, kSize);
}

}  // namespace
}  // namespace rocemu::daemon
