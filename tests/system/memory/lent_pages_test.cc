// Pages of regions that are lent to the daemon (verbs_provider/base/lent_pages.h): the program must
// not be able to tell, but by /proc/self/maps.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "tests/system/map_pages.h"
#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

constexpr size_t kPage = 4096;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

/// The permissions and the name of what is mapped at the address, such as "rw-p ".
std::string kind_at(const void* address) {
  const auto wanted = reinterpret_cast<uint64_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uint64_t begin, end;
    char dash;
    std::string permissions, offset, device, inode, name;
    words >> std::hex >> begin >> dash >> end >> permissions >> offset >> device >> inode >> name;
    if (begin <= wanted && wanted < end) return permissions + " " + name;
  }
  return "nothing";
}

constexpr const char* kLent = "rw-s /memfd:rocemu-lent";
constexpr const char* kOwn = "rw-p ";

/// Pages with a pattern.
class Pages {
 public:
  explicit Pages(size_t count) : size_(count * kPage), data_(map_pages(size_)) {
    for (size_t i = 0; i < size_; ++i) data_[i] = pattern(i);
  }
  ~Pages() { munmap(data_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  static uint8_t pattern(size_t i) { return static_cast<uint8_t>(i * 7 + i / kPage); }
  uint8_t* at(size_t offset) const { return data_ + offset; }
  size_t size() const { return size_; }
  bool is_as_made() const {
    for (size_t i = 0; i < size_; ++i) {
      if (data_[i] != pattern(i)) return false;
    }
    return true;
  }

 private:
  size_t size_;
  uint8_t* data_;
};

class LentPages : public ConnectedTest {
 protected:
  MrPtr enter(const Pages& pages, size_t offset, size_t length) {
    MrPtr region(ibv_reg_mr(pd.get(), pages.at(offset), length, kAccess));
    EXPECT_NE(region, nullptr) << std::strerror(errno);
    return region;
  }
  MrPtr enter(const Pages& pages) { return enter(pages, 0, pages.size()); }

 public:
  void register_own_stack(const Pages& stack) {
    const MrPtr region = enter(stack);
    EXPECT_EQ(kind_at(stack.at(0)), kOwn);
  }

 protected:
  ucontext_t outside;

  /// A message from one place to another.
  void send(const ibv_mr* from_mr, const uint8_t* from, const ibv_mr* to_mr, uint8_t* to,
            uint32_t length) {
    ibv_sge to_sge{reinterpret_cast<uint64_t>(to), length, to_mr->lkey};
    ibv_recv_wr recv{};
    recv.sg_list = &to_sge;
    recv.num_sge = 1;
    ibv_recv_wr* bad_recv;
    ASSERT_EQ(ibv_post_recv(receiver.get(), &recv, &bad_recv), 0);
    ibv_sge from_sge{reinterpret_cast<uint64_t>(from), length, from_mr->lkey};
    ibv_send_wr wr{};
    wr.sg_list = &from_sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad;
    ASSERT_EQ(ibv_post_send(sender.get(), &wr, &bad), 0);
    for (ibv_cq* queue : {other_cq.get(), cq.get()}) {
      const std::vector<ibv_wc> wcs = poll_for(queue, 1);
      ASSERT_EQ(wcs.size(), 1u);
      ASSERT_EQ(wcs[0].status, IBV_WC_SUCCESS) << ibv_wc_status_str(wcs[0].status);
    }
  }

  /// That messages of it and into it are right, of any length and across what is lent and what not.
  void expect_messages(const Pages& pages, const ibv_mr* region, size_t offset, size_t length) {
    Pages others(pages.size() / kPage + 1);
    const MrPtr other_region = enter(others);
    for (const size_t size : {size_t{1}, size_t{7}, size_t{200}, kPage, length / 2, length}) {
      if (size > length) continue;
      std::memset(others.at(0), 0, others.size());
      std::memset(pages.at(offset), 0x5a, length);
      const size_t begin = offset + (length - size) / 2;
      for (size_t i = 0; i < size; ++i) *pages.at(begin + i) = Pages::pattern(i + size);
      ASSERT_NO_FATAL_FAILURE(send(region, pages.at(begin), other_region.get(), others.at(1 % size),
                                   static_cast<uint32_t>(size)));
      EXPECT_EQ(std::memcmp(others.at(1 % size), pages.at(begin), size), 0) << size;
      // And back, to another place.
      std::memset(pages.at(offset), 0x5a, length);
      ASSERT_NO_FATAL_FAILURE(send(other_region.get(), others.at(1 % size), region,
                                   pages.at(offset + length - size), static_cast<uint32_t>(size)));
      EXPECT_EQ(std::memcmp(others.at(1 % size), pages.at(offset + length - size), size), 0)
          << size;
      for (size_t i = offset; i < offset + length - size; ++i) ASSERT_EQ(*pages.at(i), 0x5a) << i;
    }
  }
};

TEST_F(LentPages, AreThoseThatLieWhollyInARegion) {
  const Pages pages(5);
  const MrPtr region = enter(pages, kPage - 1, 3 * kPage);
  EXPECT_EQ(kind_at(pages.at(0)), kOwn);
  EXPECT_EQ(kind_at(pages.at(kPage)), kLent);
  EXPECT_EQ(kind_at(pages.at(3 * kPage - 1)), kLent);
  EXPECT_EQ(kind_at(pages.at(3 * kPage)), kOwn);
  EXPECT_TRUE(pages.is_as_made());
}

TEST_F(LentPages, AreTheProgramsOwnAgainAfterDeregistration) {
  const Pages pages(4);
  MrPtr region = enter(pages);
  ASSERT_EQ(kind_at(pages.at(0)), kLent);
  region.reset();
  EXPECT_EQ(kind_at(pages.at(0)), kOwn);
  EXPECT_EQ(kind_at(pages.at(pages.size() - 1)), kOwn);
  EXPECT_TRUE(pages.is_as_made());
  *pages.at(17) = 1;  // it can be written to
}

TEST_F(LentPages, HaveTheMessagesThatComeAndGo) {
  const Pages pages(20);
  const size_t offset = kPage - 3, length = 17 * kPage + 100;
  const MrPtr region = enter(pages, offset, length);
  ASSERT_EQ(kind_at(pages.at(kPage)), kLent);
  ASSERT_NO_FATAL_FAILURE(expect_messages(pages, region.get(), offset, length));
}

TEST_F(LentPages, ListsOfWhatIsLentAndWhatIsNot) {
  const Pages pages(4);
  const MrPtr region = enter(pages, kPage / 2, 2 * kPage);
  ASSERT_EQ(kind_at(pages.at(kPage)), kLent);
  ASSERT_EQ(post_recv(receiver.get(), 1), 0);
  std::array<ibv_sge, 4> list;
  const std::array<size_t, 4> offsets{kPage / 2, kPage, 2 * kPage - 50, 2 * kPage};
  std::string expected;
  for (size_t i = 0; i < list.size(); ++i) {
    const uint8_t* at = pages.at(offsets[i]);
    list[i] = {reinterpret_cast<uint64_t>(at), 100, region->lkey};
    expected.append(reinterpret_cast<const char*>(at), 100);
  }
  ibv_send_wr wr{}, *bad;
  wr.sg_list = list.data();
  wr.num_sge = static_cast<int>(list.size());
  wr.opcode = IBV_WR_SEND;
  ASSERT_EQ(ibv_post_send(sender.get(), &wr, &bad), 0);
  ASSERT_EQ(poll_for(cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(slot(1)), 400), expected);
}

/// Runs in a child of fork(); what it returns is what is expected of it.
template <class Body>
void in_child(Body body) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(LentPages, AreCopiedForAChild) {
  const Pages pages(3);
  const MrPtr region = enter(pages);
  ASSERT_EQ(kind_at(pages.at(0)), kLent);
  ASSERT_NO_FATAL_FAILURE(in_child([&] {
    const bool right = pages.is_as_made() && kind_at(pages.at(0)) == kOwn;
    std::memset(pages.at(0), 0xcc, pages.size());
    return right;
  }));
  EXPECT_TRUE(pages.is_as_made()) << "what the child wrote is seen here";
  EXPECT_EQ(kind_at(pages.at(0)), kLent);
  ASSERT_NO_FATAL_FAILURE(expect_messages(pages, region.get(), 0, pages.size()));
}

TEST_F(LentPages, AChildDoesNotSeeWhatItsParentGetsLater) {
  const Pages pages(2);
  const MrPtr region = enter(pages);
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(go[1]);
    char byte;
    _exit(read(go[0], &byte, 1) == 1 && pages.is_as_made() ? 0 : 1);
  }
  ASSERT_NO_FATAL_FAILURE(send(mr.get(), slot(0), region.get(), pages.at(0), kPage));
  std::memset(pages.at(kPage), 0xee, kPage);
  EXPECT_FALSE(pages.is_as_made());
  ASSERT_EQ(write(go[1], "g", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  close(go[0]);
  close(go[1]);
}

// ibv_fork_init(3): the pages of regions are not there for children.
TEST(LentPagesAlone, AreNotForChildrenAfterForkInit) {
  ASSERT_EQ(setenv("RDMAV_FORK_SAFE", "1", 1), 0);
  const ContextPtr context = open_device();
  ASSERT_NE(context, nullptr);
  if (ibv_is_fork_initialized() != IBV_FORK_ENABLED) {
    GTEST_SKIP() << "libibverbs was in use before, or leaves fork() to the kernel: run this alone";
  }
  const PdPtr pd(ibv_alloc_pd(context.get()));
  const Pages pages(3);
  const MrPtr region(ibv_reg_mr(pd.get(), pages.at(0), pages.size(), kAccess));
  ASSERT_EQ(kind_at(pages.at(0)), kLent);
  ASSERT_NO_FATAL_FAILURE(in_child([&] { return kind_at(pages.at(0)) == "nothing"; }));
  EXPECT_TRUE(pages.is_as_made());
}

TEST_F(LentPages, WhatIsMappedInTheirPlaceStaysAsItIs) {
  const Pages pages(4);
  MrPtr region = enter(pages);
  ASSERT_EQ(kind_at(pages.at(0)), kLent);
  ASSERT_EQ(munmap(pages.at(0), pages.size()), 0);
  ASSERT_EQ(mmap(pages.at(0), pages.size(), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
            pages.at(0));
  std::memset(pages.at(0), 0x11, pages.size());
  // Another registration there is of the memory that is there now.
  MrPtr other = enter(pages);
  ASSERT_NO_FATAL_FAILURE(expect_messages(pages, other.get(), 0, pages.size()));
  std::memset(pages.at(0), 0x22, pages.size());
  region.reset();
  other.reset();
  for (size_t i = 0; i < pages.size(); ++i) ASSERT_EQ(*pages.at(i), 0x22) << i;
  EXPECT_EQ(kind_at(pages.at(0)), kOwn);
}

// IBTA vol 1, chapter 10: memory that is registered is pinned; what the program does with its
// mapping then is not the NIC's concern.
TEST_F(LentPages, StayTheNicsWhenTheyAreUnmapped) {
  const Pages pages(3);
  const MrPtr region = enter(pages);
  ASSERT_EQ(kind_at(pages.at(0)), kLent);
  ASSERT_EQ(munmap(pages.at(kPage), kPage), 0);
  ASSERT_NO_FATAL_FAILURE(send(region.get(), pages.at(kPage - 8), mr.get(), slot(2), 16));
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(slot(2)[i], Pages::pattern(kPage - 8 + i));
  ASSERT_NO_FATAL_FAILURE(send(mr.get(), slot(2), region.get(), pages.at(kPage), 16));
}

TEST_F(LentPages, StayTheNicsWhenTheyAreProtected) {
  const Pages pages(2);
  const MrPtr region = enter(pages);
  ASSERT_EQ(kind_at(pages.at(0)), kLent);
  ASSERT_EQ(mprotect(pages.at(0), pages.size(), PROT_READ), 0);
  std::memset(slot(0), 0x77, 100);
  ASSERT_NO_FATAL_FAILURE(send(mr.get(), slot(0), region.get(), pages.at(50), 100));
  EXPECT_EQ(*pages.at(149), 0x77);
}

// As free() does with the end of the heap, for programs that deregister afterwards.
TEST_F(LentPages, MayBeUnmappedInPart) {
  const Pages pages(40);
  MrPtr region = enter(pages);
  ASSERT_EQ(kind_at(pages.at(0)), kLent);
  for (size_t page = 1; page < 40; page += 2) {
    ASSERT_EQ(munmap(pages.at(page * kPage), kPage), 0);
  }
  // A child gets copies of the rest.
  ASSERT_NO_FATAL_FAILURE(in_child([&] {
    bool right = true;
    for (size_t page = 0; page < 40; page += 2) {
      right = right && *pages.at(page * kPage + 9) == Pages::pattern(page * kPage + 9) &&
              kind_at(pages.at(page * kPage)) == kOwn;
      std::memset(pages.at(page * kPage), 0xcc, kPage);
    }
    return right;
  }));
  region.reset();
  for (size_t page = 0; page < 40; page += 2) {
    EXPECT_EQ(kind_at(pages.at(page * kPage)), kOwn);
    EXPECT_EQ(*pages.at(page * kPage + 9), Pages::pattern(page * kPage + 9));
    EXPECT_EQ(kind_at(pages.at((page + 1) * kPage)), "nothing");
  }
}

// mremap(2): EFAULT for "different mappings".
TEST_F(LentPages, LeaveAMappingThatCanGrow) {
  const Pages pages(5);
  MrPtr region = enter(pages, kPage, 2 * kPage);
  ASSERT_EQ(kind_at(pages.at(kPage)), kLent);
  region.reset();
  void* moved = mremap(pages.at(0), pages.size(), 2 * pages.size(), MREMAP_MAYMOVE);
  ASSERT_NE(moved, MAP_FAILED) << std::strerror(errno);
  for (size_t i = 0; i < pages.size(); ++i) {
    ASSERT_EQ(static_cast<uint8_t*>(moved)[i], Pages::pattern(i)) << i;
  }
  munmap(moved, 2 * pages.size());
}

TEST_F(LentPages, OfSeveralRegionsAtOnce) {
  const Pages pages(8);
  MrPtr whole = enter(pages);
  MrPtr again = enter(pages);
  MrPtr part = enter(pages, kPage, 3 * kPage);
  ASSERT_EQ(kind_at(pages.at(0)), kLent);
  ASSERT_NO_FATAL_FAILURE(expect_messages(pages, again.get(), 0, pages.size()));
  whole.reset();
  ASSERT_NO_FATAL_FAILURE(expect_messages(pages, again.get(), 0, pages.size()));
  ASSERT_NO_FATAL_FAILURE(expect_messages(pages, part.get(), kPage, 3 * kPage));
  again.reset();
  ASSERT_NO_FATAL_FAILURE(expect_messages(pages, part.get(), kPage, 3 * kPage));
  part.reset();
  EXPECT_EQ(kind_at(pages.at(0)), kOwn);
}

TEST_F(LentPages, AreNotThoseThatAnotherRegionHasAPartOf) {
  const Pages pages(4);
  const MrPtr small = enter(pages, 100, 64);
  const MrPtr whole = enter(pages);
  EXPECT_EQ(kind_at(pages.at(0)), kOwn);
  ASSERT_NO_FATAL_FAILURE(expect_messages(pages, whole.get(), 0, pages.size()));
}

TEST_F(LentPages, AreNotThoseOfOtherMemory) {
  auto* shared = static_cast<uint8_t*>(
      mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  uint8_t* protected_page = map_pages(4 * kPage);
  ASSERT_EQ(mprotect(protected_page + kPage, kPage, PROT_READ), 0);
  uint8_t* holed = map_pages(4 * kPage);
  ASSERT_EQ(munmap(holed + kPage, kPage), 0);
  for (uint8_t* pages : {shared, protected_page, holed}) {
    const std::string before = kind_at(pages);
    MrPtr region(ibv_reg_mr(pd.get(), pages, 4 * kPage, kAccess));
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(kind_at(pages), before);
    ASSERT_NO_FATAL_FAILURE(send(mr.get(), slot(0), region.get(), pages, 100));
    region.reset();
    munmap(pages, kPage);
    munmap(pages + 2 * kPage, 2 * kPage);
    if (pages != holed) munmap(pages + kPage, kPage);
  }
}

// setrlimit(2), RLIMIT_FSIZE: who makes a longer file gets SIGXFSZ.
TEST_F(LentPages, AreNotMoreThanAFileMayHave) {
  const Pages pages(3);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{2 * kPage, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
  const MrPtr three = enter(pages);
  EXPECT_EQ(kind_at(pages.at(0)), kOwn);
  const Pages others(2);
  const MrPtr two = enter(others);
  EXPECT_EQ(kind_at(others.at(0)), kLent);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
}

// As of a coroutine that registers its own.
TEST_F(LentPages, AreNotThoseOfTheStackThatIsInUse) {
  static LentPages* test;
  test = this;
  static const Pages stack(64);
  ucontext_t inside;
  ASSERT_EQ(getcontext(&inside), 0);
  inside.uc_stack.ss_sp = stack.at(0);
  inside.uc_stack.ss_size = stack.size();
  inside.uc_link = &outside;
  makecontext(
      &inside, [] { test->register_own_stack(stack); }, 0);
  ASSERT_EQ(swapcontext(&outside, &inside), 0);
}

TEST_F(LentPages, AreLimitedInNumberAndTheRestWorksAsEver) {
  constexpr size_t kRegions = 100;
  const Pages pages(kRegions + 1);
  std::vector<MrPtr> regions;
  for (size_t i = 0; i < kRegions; ++i) regions.push_back(enter(pages, i * kPage, kPage));
  EXPECT_EQ(kind_at(pages.at(0)), kLent);
  EXPECT_EQ(kind_at(pages.at((kRegions - 1) * kPage)), kOwn);
  for (size_t i = 0; i < kRegions; ++i) {
    const size_t to = (i + kRegions / 2) % kRegions;
    std::memset(pages.at(i * kPage), static_cast<int>(i), kPage);
    ASSERT_NO_FATAL_FAILURE(send(regions[i].get(), pages.at(i * kPage), regions[to].get(),
                                 pages.at(to * kPage), kPage));
    ASSERT_EQ(*pages.at(to * kPage + kPage - 1), static_cast<uint8_t>(i));
  }
  regions.clear();
  for (size_t i = 0; i < kRegions; ++i) ASSERT_EQ(kind_at(pages.at(i * kPage)), kOwn);
  // There is room again.
  const MrPtr region = enter(pages);
  EXPECT_EQ(kind_at(pages.at(0)), kLent);
}

TEST_F(LentPages, EndWhenARegionGetsOtherMemory) {
  const Pages before(2), after(2);
  const MrPtr region = enter(before);
  ASSERT_EQ(kind_at(before.at(0)), kLent);
  ASSERT_EQ(ibv_rereg_mr(region.get(), IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, after.at(0),
                         after.size(), 0),
            0);
  EXPECT_EQ(kind_at(before.at(0)), kOwn);
  EXPECT_TRUE(before.is_as_made());
  ASSERT_NO_FATAL_FAILURE(expect_messages(after, region.get(), 0, after.size()));
}

TEST_F(LentPages, EndWithTheContextThatTheyWereLentBy) {
  const Pages pages(2);
  ibv_context* other = open_device().release();
  ibv_pd* other_pd = ibv_alloc_pd(other);
  ASSERT_NE(ibv_reg_mr(other_pd, pages.at(0), pages.size(), kAccess), nullptr);
  ASSERT_EQ(kind_at(pages.at(0)), kLent);
  ASSERT_EQ(ibv_close_device(other), 0);  // with all that is still there
  EXPECT_EQ(kind_at(pages.at(0)), kOwn);
  EXPECT_TRUE(pages.is_as_made());
}

// Last, since a program that had threads is not taken for one that has none.

TEST_F(LentPages, LoseNothingThatAThreadWritesDuringDeregistration) {
  const Pages pages(64);
  MrPtr region = enter(pages);
  ASSERT_EQ(kind_at(pages.at(0)), kLent);
  std::atomic<bool> over = false;
  std::vector<uint64_t> written(pages.size() / kPage);
  std::thread writer([&] {
    for (uint64_t round = 1; round <= 2 || !over; ++round) {
      for (size_t page = 0; page < written.size(); ++page) {
        std::memcpy(pages.at(page * kPage), &round, sizeof round);
        written[page] = round;
      }
    }
  });
  region.reset();
  for (int i = 0; i < 20; ++i) enter(pages).reset();
  over = true;
  writer.join();
  for (size_t page = 0; page < written.size(); ++page) {
    uint64_t found;
    std::memcpy(&found, pages.at(page * kPage), sizeof found);
    EXPECT_EQ(found, written[page]) << page;
  }
  // A child gets copies of such pages, too.
  ASSERT_NO_FATAL_FAILURE(in_child([&] {
    std::memset(pages.at(0), 0xcc, pages.size());
    return true;
  }));
  EXPECT_NE(*pages.at(kPage + 100), 0xcc);
}

TEST_F(LentPages, AreNotTakenFromAProgramWithThreads) {
  std::atomic<bool> over = false;
  std::thread writer([&] { over.wait(false); });
  const Pages pages(4);
  const MrPtr region = enter(pages);
  EXPECT_EQ(kind_at(pages.at(0)), kOwn);
  expect_messages(pages, region.get(), 0, pages.size());
  over = true;
  over.notify_one();
  writer.join();
}

TEST(LentPagesAlone, EndForWhoRegistersForEachTransfer) {
  const ContextPtr context = open_device();
  ASSERT_NE(context, nullptr);
  const PdPtr pd(ibv_alloc_pd(context.get()));
  const Pages pages(2);
  const auto is_lent = [&] {
    const MrPtr region(ibv_reg_mr(pd.get(), pages.at(0), pages.size(), kAccess));
    return kind_at(pages.at(0)) == kLent;
  };
  int times = 0;
  while (times < 1000 && is_lent()) ++times;
  EXPECT_LT(times, 1000);
  if (times == 0) GTEST_SKIP() << "this process had threads: run this alone";
  EXPECT_GE(times, 100);
  EXPECT_TRUE(pages.is_as_made());
  EXPECT_EQ(kind_at(pages.at(0)), kOwn);
}

}  // namespace
}  // namespace rocemu::system_test
