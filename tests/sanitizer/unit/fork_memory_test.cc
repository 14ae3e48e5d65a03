// Tests which memory fork() does not make copy-on-write. The flags are those of proc_pid_smaps(5):
// "dc" is MADV_DONTFORK ("do not copy area on fork") and "wf" MADV_WIPEONFORK (madvise(2)).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verbs_provider/sanitizer/memory/fork_memory.h"

namespace rocemu::sanitizer {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;

TEST(ForkMemory, IsSharedOrNotGivenToTheChild) {
  EXPECT_THAT(
      memory_kept_at_fork("1000-3000 rw-p 00000000 00:00 0 [heap]\n"
                          "Rss:                   8 kB\n"
                          "VmFlags: rd wr mr mw me ac sd\n"
                          "4000-5000 rw-s 00000000 00:01 42 /dev/zero (deleted)\n"
                          "VmFlags: rd wr sh mr mw me ms sd\n"
                          "7000-8000 rw-p 00000000 00:00 0\n"
                          "VmFlags: rd wr mr mw me dc ac sd\n"
                          "9000-a000 rw-p 00000000 00:00 0\n"
                          "VmFlags: rd wr mr mw me wf\n"),
      ElementsAre(FieldsAre(0x4000, 0x1000), FieldsAre(0x7000, 0x1000), FieldsAre(0x9000, 0x1000)));
}

TEST(ForkMemory, OfNeighborsIsOneRange) {
  EXPECT_THAT(memory_kept_at_fork("4000-5000 rw-s 00000000 00:01 42 /memory\n"
                                  "VmFlags: rd wr sh\n"
                                  "5000-7000 rw-p 00000000 00:00 0\n"
                                  "VmFlags: rd wr dc\n"),
              ElementsAre(FieldsAre(0x4000, 0x3000)));
}

}  // namespace
}  // namespace rocemu::sanitizer
