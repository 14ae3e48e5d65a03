// Tests which mapped files are recognized as files for which the daemon may have to wait.
#include "verbs_provider/context/file_systems.h"

#include <gtest/gtest.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "tests/support/page_size.h"
#include "verbs_provider/system/proc_file.h"

namespace rocemu::provider {
namespace {

std::string kind_in(std::string line, unsigned device_major, unsigned device_minor) {
  const char* kind = kind_of_file_system(line.data(), device_major, device_minor);
  return kind == nullptr ? "" : kind;
}

TEST(FileSystems, TheKindStandsBehindTheOptionalFields) {
  EXPECT_EQ(kind_in("36 35 98:1 /mnt1 /mnt2 rw master:1 - ext4 /dev/root rw", 98, 1), "ext4");
  EXPECT_EQ(kind_in("36 35 0:51 / /a\\040-\\040b rw - fuse.sshfs host:/a - b rw", 0, 51),
            "fuse.sshfs");
  EXPECT_EQ(kind_in("36 35 0:51 / /x rw shared:1 master:2 - nfs4 host:/x rw", 0, 51), "nfs4");
}

TEST(FileSystems, LinesOfOtherDevicesAreIgnored) {
  const std::string line = "36 35 98:1 / / rw - ext4 /dev/root rw";
  EXPECT_EQ(kind_in(line, 98, 11), "");
  EXPECT_EQ(kind_in(line, 9, 81), "");
  EXPECT_EQ(kind_in("", 98, 1), "");
  EXPECT_EQ(kind_in("36 35 98:1 / / rw", 98, 1), "");
}

TEST(FileSystems, DisksAndMemoryAreLocal) {
  for (const char* kind : {"ext4", "xfs", "btrfs", "tmpfs", "hugetlbfs", "overlay"}) {
    EXPECT_TRUE(is_local(kind)) << kind;
  }
  for (const char* kind : {"fuse", "fuseblk", "fuse.sshfs", "nfs", "nfs4", "9p", "virtiofs", "cifs",
                           "smb3", "ceph", "afs", "lustre", "a kind of tomorrow", ""}) {
    EXPECT_FALSE(is_local(kind)) << kind;
  }
}

/// A page of memory, which is unmapped when this object is destroyed.
class Page {
 public:
  explicit Page(int flags, int file = -1)
      : at_(mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, flags, file, 0)) {}
  ~Page() { munmap(at_, kPageSize); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  bool may_have_to_be_waited_for() const {
    const auto begin = reinterpret_cast<uint64_t>(at_);
    return kind_of_memory(begin, begin + kPageSize).may_block;
  }

 private:
  void* at_;
};

TEST(FileSystems, MemoryWithoutAFileNeedsNoWait) {
  EXPECT_FALSE(Page(MAP_PRIVATE | MAP_ANONYMOUS).may_have_to_be_waited_for());
  EXPECT_FALSE(Page(MAP_SHARED | MAP_ANONYMOUS).may_have_to_be_waited_for());
  const char local = 0;
  const auto stack = reinterpret_cast<uint64_t>(&local);
  EXPECT_FALSE(kind_of_memory(stack, stack + 1).may_block);
}

TEST(FileSystems, AMemoryFileNeedsNoWait) {
  const int file = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(kPageSize)), 0);
  EXPECT_FALSE(Page(MAP_SHARED, file).may_have_to_be_waited_for());
  EXPECT_FALSE(Page(MAP_PRIVATE, file).may_have_to_be_waited_for());
  close(file);
}

// Without a free descriptor, /proc/self/maps cannot be opened.
TEST(FileSystems, NobodyWaitsForMemoryWithoutDescriptorsLeft) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  const Page page(MAP_PRIVATE | MAP_ANONYMOUS);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_FALSE(page.may_have_to_be_waited_for());
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

// Code with a sanitizer needs more stack.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kStacks = 16;
#else
constexpr size_t kStacks = 1;
#endif

TEST(FileSystems, AThreadWithASmallStackCanAsk) {
  const int file = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(file, static_cast<off_t>(kPageSize)), 0);
  const Page page(MAP_SHARED, file);
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(
      pthread_attr_setstacksize(&attributes, kStacks * static_cast<size_t>(PTHREAD_STACK_MIN)), 0);
  pthread_t thread;
  const auto ask = [](void* about) -> void* {
    return static_cast<Page*>(about)->may_have_to_be_waited_for() ? about : nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, ask, const_cast<Page*>(&page)), 0);
  void* waits = nullptr;
  EXPECT_EQ(pthread_join(thread, &waits), 0);
  EXPECT_EQ(waits, nullptr);
  pthread_attr_destroy(&attributes);
  close(file);
}

TEST(ProcFile, CutsALineThatIsTooLong) {
  char path[] = "/tmp/proc_file_XXXXXX";
  const int file = mkstemp(path);
  const std::string text =
      std::string(10'000, 'a') + "\nshort\n" + std::string(4096, 'b') + "\nend\n";
  ASSERT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ProcFile lines(path);
  EXPECT_EQ(std::string(lines.next()), std::string(4096, 'a'));
  EXPECT_STREQ(lines.next(), "short");
  EXPECT_EQ(std::string(lines.next()), std::string(4096, 'b'));
  EXPECT_STREQ(lines.next(), "end");
  EXPECT_EQ(lines.next(), nullptr);
  EXPECT_FALSE(lines.failed());
  close(file);
  unlink(path);
}

TEST(FileSystems, UnmappedMemoryIsNotWaitedFor) {
  EXPECT_FALSE(kind_of_memory(4096, 8192).may_block);
  EXPECT_FALSE(kind_of_memory(8192, 4096).may_block);  // the length would wrap around
}

// Tests what a NIC detects when it pins pages: pages that do not exist or are read-only.
TEST(FileSystems, MissingAndReadOnlyPagesAreFound) {
  auto* pages = static_cast<std::byte*>(
      mmap(nullptr, 4 * kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const auto begin = reinterpret_cast<uint64_t>(pages);
  const auto kind = [&](size_t from, size_t to) {
    return kind_of_memory(begin + from * kPageSize + 1, begin + to * kPageSize - 1);
  };
  ASSERT_EQ(mprotect(pages + kPageSize, kPageSize, PROT_READ), 0);
  ASSERT_EQ(mprotect(pages + 2 * kPageSize, kPageSize, PROT_NONE), 0);
  EXPECT_FALSE(kind(0, 2).has_hole);
  EXPECT_TRUE(kind(0, 2).is_read_only);
  EXPECT_FALSE(kind(0, 1).is_read_only);
  EXPECT_TRUE(kind(0, 3).has_hole) << "PROT_NONE";
  EXPECT_FALSE(kind(3, 4).has_hole);
  munmap(pages + kPageSize, kPageSize);
  EXPECT_TRUE(kind(0, 3).has_hole) << "in the middle";
  EXPECT_TRUE(kind(0, 2).has_hole) << "at the end";
  EXPECT_TRUE(kind(1, 4).has_hole) << "at the beginning";
  munmap(pages, kPageSize);
  munmap(pages + 2 * kPageSize, 2 * kPageSize);
}

}  // namespace
}  // namespace rocemu::provider
