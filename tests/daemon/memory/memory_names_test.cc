// Tests bytes that have several addresses or clients: two contexts of one process, and memory that
// is mapped twice.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "emulator/daemon/memory/process_memory.h"
#include "tests/os/child.h"
#include "tests/support/page_size.h"

namespace rocemu::daemon {
namespace {

using engine::ClientId;
using engine::MemoryResult;
using engine::RemoteRange;
using Bytes = std::vector<uint8_t>;

constexpr ClientId kFirst{1}, kSecond{2};
constexpr engine::QpNumber kQp{9};

/// Two clients: both are contexts of this process, or the second one is a context of a child.
/// `shared_` is a page that is mapped twice, `own_` one that is mapped once.
class MemoryNames : public testing::Test {
 protected:
  MemoryNames() : file_(memfd_create("page", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(file_.get(), static_cast<off_t>(kPageSize)), 0);
    for (uint8_t*& name : shared_) name = map(MAP_SHARED, file_.get());
    own_ = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
    EXPECT_EQ(memory_.add(kFirst, getpid(), UniqueFd()), ProcessMemory::Way::kProcessVm);
  }
  ~MemoryNames() override {
    for (uint8_t* page : {shared_[0], shared_[1], own_}) munmap(page, kPageSize);
  }
  static uint8_t* map(int flags, int file) {
    void* page = mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, flags, file, 0);
    EXPECT_NE(page, MAP_FAILED);
    return static_cast<uint8_t*>(page);
  }

  void add_second_context() {
    EXPECT_EQ(memory_.add(kSecond, getpid(), UniqueFd()), ProcessMemory::Way::kProcessVm);
  }
  static RemoteRange at(const uint8_t* page, size_t length, bool is_shared) {
    return {reinterpret_cast<uintptr_t>(page), length, is_shared};
  }
  MemoryResult write(ClientId client, const RemoteRange& to, const Bytes& bytes) {
    const std::array<std::span<const uint8_t>, 1> from{bytes};
    return memory_.write_soon(client, {&to, 1}, from);
  }
  MemoryResult receive(ClientId client, const RemoteRange& to, const Bytes& bytes) {
    const std::array<std::span<const uint8_t>, 1> from{bytes};
    return memory_.write_received(client, kQp, true, {&to, 1}, from);
  }
  Bytes read(ClientId client, const RemoteRange& from) {
    Bytes bytes(from.length);
    const std::array<std::span<uint8_t>, 1> to{bytes};
    EXPECT_EQ(memory_.read(client, {&from, 1}, to), MemoryResult::kDone);
    return bytes;
  }
  /// Makes the client take payload together with completions, so that no payload is written
  /// immediately.
  void take_payload(ClientId client) {
    rings_.push_back(std::make_unique<abi::DoorbellRing>());
    payloads_.push_back(std::make_unique<abi::Payload>());
    rings_.back()->takes_payload = 1;
    memory_.share(client, *payloads_.back(), *rings_.back());
  }
  uint8_t complete(ClientId client, uint32_t length) {
    abi::Cqe cqe{};
    cqe.qp_num = kQp.value;
    cqe.byte_len = length;
    cqe.queue = abi::WorkQueue::kRecv;
    memory_.flush();
    return memory_.attach_payload(client, cqe, engine::CqId{client.value}, 0);
  }

  UniqueFd file_;
  std::array<uint8_t*, 2> shared_{};
  uint8_t* own_ = nullptr;
  std::vector<std::unique_ptr<abi::DoorbellRing>> rings_;
  std::vector<std::unique_ptr<abi::Payload>> payloads_;
  ProcessMemory memory_;
};

TEST_F(MemoryNames, AWaitingWriteIsReadByTheOtherMapping) {
  write(kFirst, at(shared_[0], 3, true), {1, 2, 3});
  EXPECT_EQ(read(kFirst, at(shared_[1], 3, true)), Bytes({1, 2, 3}));
}

// The write is seen even if only one mapping is known to be shared: a private mapping of a file
// shows the file's bytes until it is written to.
TEST_F(MemoryNames, AWaitingWriteIsReadByAPrivateMapping) {
  uint8_t* page = map(MAP_PRIVATE, file_.get());
  write(kFirst, at(shared_[0], 3, true), {1, 2, 3});
  EXPECT_EQ(read(kFirst, at(page, 3, false)), Bytes({1, 2, 3}));
  munmap(page, kPageSize);
}

TEST_F(MemoryNames, TheLaterOfTwoWritesStays) {
  write(kFirst, at(shared_[0], 2, true), {1, 1});
  write(kFirst, at(shared_[1], 2, true), {2, 2});
  write(kFirst, at(shared_[0], 1, true), {3});
  memory_.flush();
  EXPECT_EQ(Bytes(shared_[0], shared_[0] + 2), Bytes({3, 2}));
}

TEST_F(MemoryNames, WritesOfTwoProcessesAreMadeInTheirOrder) {
  const Child child([] {
    while (true) pause();
  });
  if (memory_.add(kSecond, child.pid(), UniqueFd()) != ProcessMemory::Way::kProcessVm) {
    GTEST_SKIP() << "no process_vm_writev to a child here";
  }
  for (const uint8_t round : {uint8_t{1}, uint8_t{4}}) {
    write(kFirst, at(shared_[0], 2, true), {round, round});
    write(kSecond, at(shared_[1], 2, true), {static_cast<uint8_t>(round + 1), 9});
    EXPECT_EQ(read(kFirst, at(shared_[0], 1, true)), Bytes({static_cast<uint8_t>(round + 1)}));
    write(kFirst, at(shared_[1], 1, true), {static_cast<uint8_t>(round + 2)});
    EXPECT_EQ(read(kSecond, at(shared_[0], 2, true)), Bytes({static_cast<uint8_t>(round + 2), 9}));
  }
}

TEST_F(MemoryNames, AMessageForSharedMemoryIsWrittenBeforeItsCompletion) {
  take_payload(kFirst);
  receive(kFirst, at(shared_[0], 3, true), {1, 2, 3});
  EXPECT_EQ(complete(kFirst, 3), 0) << "it is not beside the completion";
  EXPECT_EQ(Bytes(shared_[1], shared_[1] + 3), Bytes({1, 2, 3}));
  receive(kFirst, at(own_, 3, false), {1, 2, 3});
  EXPECT_NE(complete(kFirst, 3), 0) << "memory of one mapping has its slot as before";
}

TEST_F(MemoryNames, ContextsOfOneProcessSeeEachOthersWaitingWrites) {
  add_second_context();
  write(kFirst, at(own_, 2, false), {1, 2});
  EXPECT_EQ(read(kSecond, at(own_, 2, false)), Bytes({1, 2}));
  write(kSecond, at(own_, 1, false), {3});
  write(kFirst, at(own_, 1, false), {4});
  memory_.flush();
  EXPECT_EQ(Bytes(own_, own_ + 2), Bytes({4, 2}));
}

TEST_F(MemoryNames, ContextsOfOneProcessSeeEachOthersMessages) {
  add_second_context();
  take_payload(kFirst);
  take_payload(kSecond);
  receive(kFirst, at(own_, 2, false), {1, 2});
  ASSERT_NE(complete(kFirst, 2), 0);
  EXPECT_EQ(read(kSecond, at(own_, 2, false)), Bytes({1, 2}));

  receive(kFirst, at(own_, 2, false), {3, 4});
  ASSERT_NE(complete(kFirst, 2), 0);
  write(kSecond, at(own_, 1, false), {5});
  memory_.flush();
  EXPECT_EQ(Bytes(own_, own_ + 2), Bytes({5, 4})) << "the message came before the write";

  receive(kFirst, at(own_, 2, false), {6, 6});
  ASSERT_NE(complete(kFirst, 2), 0);
  receive(kSecond, at(own_, 1, false), {7});
  EXPECT_EQ(Bytes(own_, own_ + 2), Bytes({6, 6})) << "the older is written before the newer waits";
}

// A process that has several contexts may close any of them and continue to use the others.
TEST_F(MemoryNames, WhatWaitsIsWrittenWhenItsContextIsClosed) {
  add_second_context();
  write(kFirst, at(own_, 1, false), {1});
  write(kSecond, at(shared_[0], 1, true), {2});
  memory_.remove(kFirst);
  EXPECT_EQ(own_[0], 1);
  EXPECT_EQ(read(kSecond, at(shared_[1], 1, true)), Bytes({2}));
  memory_.remove(kSecond);
  memory_.flush();
  EXPECT_EQ(memory_.read(kSecond, {}, {}), MemoryResult::kGone);
}

// If a process is in another PID namespace, the daemon has no PID for it, and identifies the
// process by its /proc/PID/mem.
TEST_F(MemoryNames, ContextsOfAProcessWithoutPidAreKnownByItsMemoryFile) {
  const auto open_memory = [] { return UniqueFd(open("/proc/self/mem", O_RDWR | O_CLOEXEC)); };
  constexpr ClientId kThird{3}, kFourth{4};
  ASSERT_EQ(memory_.add(kThird, 0, open_memory()), ProcessMemory::Way::kMemFile);
  ASSERT_EQ(memory_.add(kFourth, 0, open_memory()), ProcessMemory::Way::kMemFile);
  write(kThird, at(own_, 2, false), {1, 2});
  EXPECT_EQ(read(kFourth, at(own_, 2, false)), Bytes({1, 2}));
}

}  // namespace
}  // namespace rocemu::daemon
