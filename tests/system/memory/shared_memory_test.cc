// Tests bytes with several addresses: memory that is mapped twice, memory of several processes, and
// memory that several contexts of a process have registered. A request through any address sees the
// effects of earlier requests (IBTA vol 1, 9.5 and 10.8.3.3), and atomics of one device are atomic
// (IBV_ATOMIC_HCA, ibv_query_device(3)).
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <random>
#include <vector>

#include "tests/support/page_size.h"
#include "tests/system/memory/party.h"

namespace rocemu::system_test {
namespace {

/// One page of a file, which can be mapped several times.
class Page {
 public:
  Page() : file_(memfd_create("page", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(file_, static_cast<off_t>(kPageSize)), 0);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  ~Page() {
    for (uint8_t* mapping : mappings_) munmap(mapping, kPageSize);
    close(file_);
  }

  uint8_t* map() {
    void* mapping = mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    EXPECT_NE(mapping, MAP_FAILED);
    mappings_.push_back(static_cast<uint8_t*>(mapping));
    return mappings_.back();
  }

 private:
  int file_;
  std::vector<uint8_t*> mappings_;
};

/// The same bytes, registered twice: at one address or two, and by one Party or two, as the
/// parameter says.
class SharedMemory : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string kind = GetParam();
    first_ = page_.map();
    const bool has_one_address = kind.find("OneAddress") != std::string::npos;
    if (has_one_address) {  // both contexts register the same private memory
      void* pages =
          mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(pages, MAP_FAILED);
      first_ = static_cast<uint8_t*>(pages);
    }
    second_ = has_one_address ? first_ : page_.map();
    const bool has_two_devices = kind.find("TwoDevices") != std::string::npos;
    if (has_one_address || has_two_devices || kind.find("TwoContexts") != std::string::npos) {
      other_ = std::make_unique<Party>(has_two_devices ? 1 : 0);
    }
    second_party_ = other_ != nullptr ? other_.get() : &party_;
    first_mr_ = party_.enter(first_, kPageSize);
    second_mr_ = second_party_->enter(second_, kPageSize);
  }
  void TearDown() override {
    first_mr_.reset();
    second_mr_.reset();
    if (first_ == second_) munmap(first_, kPageSize);
  }

  Party& party(bool second) { return second ? *second_party_ : party_; }
  uint8_t* at(bool second, size_t offset) const { return (second ? second_ : first_) + offset; }
  const MrPtr& region(bool second) const { return second ? second_mr_ : first_mr_; }
  bool is_one_qp() const { return other_ == nullptr; }

  Page page_;
  uint8_t *first_ = nullptr, *second_ = nullptr;
  Party party_;
  std::unique_ptr<Party> other_;
  Party* second_party_ = nullptr;
  MrPtr first_mr_, second_mr_;
};

TEST_P(SharedMemory, AReadSeesTheWriteByTheOtherName) {
  for (uint64_t round = 1; round <= 200; ++round) {
    const bool swapped = round % 2 == 0;
    Party& writer = party(swapped);
    Party& reader = party(!swapped);
    writer.word(0) = round;
    if (is_one_qp()) {  // no need to wait: the requests of one QP are in order
      writer.post(IBV_WR_RDMA_WRITE, 0, at(swapped, 64), region(swapped), 8, 0);
    } else {
      writer.request(IBV_WR_RDMA_WRITE, 0, at(swapped, 64), region(swapped), 8);
    }
    reader.request(IBV_WR_RDMA_READ, 64, at(!swapped, 64), region(!swapped), 8);
    ASSERT_EQ(reader.word(8), round);
  }
}

TEST_P(SharedMemory, TheLaterOfTwoWritesStays) {
  for (uint64_t round = 1; round <= 100; ++round) {
    for (const bool second : {false, true, false}) {
      party(second).word(0) = 2 * round + second;
      party(second).post(IBV_WR_RDMA_WRITE, 0, at(second, 128), region(second), 8);
      if (!is_one_qp()) party(second).finish();
    }
    if (is_one_qp()) party_.finish(3);
    ASSERT_EQ(*reinterpret_cast<uint64_t*>(at(true, 128)), 2 * round);
  }
}

TEST_P(SharedMemory, AdditionsByBothNamesAddUp) {
  constexpr int kAdditions = 200;
  for (int i = 0; i < kAdditions; ++i) {
    const bool second = i % 2 != 0;
    party(second).post(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, at(second, 256), region(second), 8);
    if (i % 32 == 31 || i == kAdditions - 1) {
      party_.finish(is_one_qp() ? i % 32 + 1 : i % 32 / 2 + 1);
      if (!is_one_qp()) party(true).finish(i % 32 / 2 + 1);
    }
  }
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(at(false, 256)), static_cast<uint64_t>(kAdditions));
}

// The SEND is complete at its sender, and its receive has not been polled yet.
TEST_P(SharedMemory, AReadByTheOtherNameSeesAMessageThatIsNotPolled) {
  for (uint64_t round = 1; round <= 100; ++round) {
    party_.post_recv(at(false, 512), region(false), 16);
    party_.word(0) = round;
    party_.send(0, 8);
    party(true).request(IBV_WR_RDMA_READ, 64, at(true, 512), region(true), 8);
    ASSERT_EQ(party(true).word(8), round);
    party_.take_received();
  }
}

TEST_P(SharedMemory, AWriteByTheOtherNameStaysWhenAnOlderMessageIsPolled) {
  for (uint64_t round = 1; round <= 100; ++round) {
    party_.post_recv(at(false, 512), region(false), 16);
    party_.word(0) = round;
    party_.send(0, 8);
    party(true).word(0) = ~round;
    party(true).request(IBV_WR_RDMA_WRITE, 0, at(true, 512), region(true), 8);
    party_.take_received();
    ASSERT_EQ(*reinterpret_cast<uint64_t*>(at(false, 512)), ~round);
  }
}

// Two messages to the same bytes, of which the older one is polled last.
TEST_P(SharedMemory, TheLaterOfTwoMessagesStays) {
  if (is_one_qp()) return;  // one CQ can only be polled in order
  for (uint64_t round = 1; round <= 100; ++round) {
    for (const bool second : {false, true}) {
      party(second).post_recv(at(second, 512), region(second), 16);
      party(second).word(0) = 2 * round + second;
      party(second).send(0, 8);
    }
    party(true).take_received();
    party(false).take_received();
    ASSERT_EQ(*reinterpret_cast<uint64_t*>(at(false, 512)), 2 * round + 1);
  }
}

// Posts random requests through both addresses, and compares the memory with an array that was
// changed in the same way.
TEST_P(SharedMemory, MatchesAnArrayAfterRequestsByEitherAddress) {
  constexpr size_t kArea = 256;  // a small area, so that most requests overlap
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<uint8_t> model(at(false, 1024), at(false, 1024) + kArea);
    for (int burst = 0; burst < 30; ++burst) {
      struct Read {
        Party* by;
        size_t local;
        std::vector<uint8_t> expected;
      };
      std::vector<Read> reads;
      std::array<int, 2> posted{};
      for (size_t i = 0; i < 16; ++i) {
        const bool second = random() % 2 != 0;
        Party& by = party(second);
        const size_t offset = random() % (kArea - 64);
        const auto length = static_cast<uint32_t>(1 + random() % 64);
        const size_t local = (i + (second ? 32 : 0)) * 64;
        if (random() % 2 != 0) {
          std::generate_n(by.buffer.begin() + static_cast<ptrdiff_t>(local), length,
                          std::ref(random));
          std::copy_n(by.buffer.begin() + static_cast<ptrdiff_t>(local), length,
                      model.begin() + static_cast<ptrdiff_t>(offset));
          by.post(IBV_WR_RDMA_WRITE, local, at(second, 1024 + offset), region(second), length,
                  IBV_SEND_SIGNALED | IBV_SEND_FENCE);  // executed after the READs before it
        } else {
          const auto begin = model.begin() + static_cast<ptrdiff_t>(offset);
          reads.push_back({&by, local, {begin, begin + length}});
          by.post(IBV_WR_RDMA_READ, local, at(second, 1024 + offset), region(second), length);
        }
        ++posted[second];
        if (!is_one_qp()) {
          by.finish();  // the order of requests on two QPs is only known after their completions
          posted = {};
        }
      }
      if (is_one_qp()) party_.finish(posted[0] + posted[1]);
      for (const Read& read : reads) {
        const auto begin = read.by->buffer.begin() + static_cast<ptrdiff_t>(read.local);
        ASSERT_EQ(std::vector<uint8_t>(begin, begin + static_cast<ptrdiff_t>(read.expected.size())),
                  read.expected);
      }
    }
    ASSERT_EQ(std::vector<uint8_t>(at(true, 1024), at(true, 1024) + kArea), model);
  }
}

INSTANTIATE_TEST_SUITE_P(With, SharedMemory,
                         testing::Values("TwoMappings", "TwoMappingsOfTwoContexts",
                                         "TwoMappingsOfTwoDevices", "OneAddressOfTwoContexts",
                                         "OneAddressOfTwoDevices"),
                         [](const auto& one) { return std::string(one.param); });

/// Starts a process that runs `body`. Its exit status is 0 if all expectations of `body` were met.
pid_t start(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  body();
  _exit(testing::Test::HasFailure() ? 1 : 0);
}
void expect_success(pid_t child) {
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

TEST(SharedMemoryOfProcesses, AdditionsOfAllAddUp) {
  constexpr int kProcesses = 3, kAdditions = 100;
  Page page;
  uint8_t* shared = page.map();
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(start([&] {
      Party party;
      const MrPtr region = party.enter(shared, kPageSize);
      for (int j = 0; j < kAdditions; ++j) {
        party.request(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, shared + 64, region, 8);
      }
    }));
  }
  for (const pid_t child : children) expect_success(child);
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(shared + 64), uint64_t{kProcesses} * kAdditions);
}

// A process that only reads the memory sees a message, even if the receiving program never polls
// it.
TEST(SharedMemoryOfProcesses, AnotherSeesAMessageWithoutAnyVerb) {
  Page page;
  uint8_t* shared = page.map();
  auto& stage = *reinterpret_cast<std::atomic<int>*>(shared);
  const pid_t child = start([&] {
    Party party;
    const MrPtr region = party.enter(shared, kPageSize);
    for (int round = 1; round <= 20; ++round) {
      party.post_recv(shared + 64, region, 8);
      party.word(0) = static_cast<uint64_t>(round);
      party.send(0, 8);
      stage = round;
      while (stage != -round) usleep(100);
      party.take_received();
    }
  });
  for (int round = 1; round <= 20; ++round) {
    while (stage != round) usleep(100);
    EXPECT_EQ(*reinterpret_cast<uint64_t*>(shared + 64), static_cast<uint64_t>(round));
    stage = -round;
  }
  expect_success(child);
}

}  // namespace
}  // namespace rocemu::system_test
