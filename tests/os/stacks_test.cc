// Tests that the outputs of eu-stack and gdb, which both print stacks, yield the same names of
// functions.
#include "emulator/os/threads/stacks.h"

#include <gtest/gtest.h>

namespace rocemu {
namespace {

using Threads = std::vector<std::string>;

TEST(Stacks, OfEuStackAreNamesOfFunctions) {
  EXPECT_EQ(functions_in("TID 12:\n"
                         "#0  0x00007fe89608fdf2 rocemu::turns::give(long)\n"
                         "#1  0x00007fe89608fdf3 read\n"
                         "#2  0x00007fe89608fdf4 ibv_get_cq_event@@IBVERBS_1.1\n"
                         "#3  0x0000563190b4415a (anonymous namespace)::wait(ibv_cq*)\n"
                         "#4  0x0000563190b4415b a::(anonymous namespace)::b(int)\n"
                         "#5  0x0000563190b4415c\n"
                         "#6  0x0000563190b4418b main\n"
                         "#7  0x00007fe895fe324a __libc_start_call_main\n"
                         "#8  0x00007fe895fe3305 __libc_start_main@@GLIBC_2.34\n"
                         "#9  0x0000563190b44081 _start\n"
                         "TID 13:\n"
                         "#0  0x00007fe89608fdf2 pause\n"
                         "#1  0x00007fe8960451f5 start_thread\n"
                         "#2  0x00007fe8960c58ec __clone3\n"),
            (Threads{"pause",
                     "read < ibv_get_cq_event < (anonymous namespace)::wait < "
                     "a::(anonymous namespace)::b < main"}));
}

TEST(Stacks, OfGdbAreNamesOfFunctions) {
  EXPECT_EQ(
      functions_in("Thread 2 (Thread 0x7f (LWP 13) \"p\"):\n"
                   "#0  0x00007fe89608fdf2 in pause () from /lib/libc.so.6\n"
                   "#1  0x00007fe8960451f5 in start_thread (arg=0x1) at pthread_create.c:442\n"
                   "Thread 1 (Thread 0x7f (LWP 12) \"p\"):\n"
                   "#0  (anonymous namespace)::wait (cq=0x0) at p.cc:3\n"
                   "#1  <signal handler called>\n"
                   "#2  0x0000563190b4418b in main (argc=1, argv=0x7ff) at p.cc:9\n"),
      (Threads{"(anonymous namespace)::wait < main", "pause"}));
}

TEST(Stacks, OfAThreadThatMayNotBeInspectedHaveNoFunction) {
  EXPECT_EQ(functions_in("eu-stack: dwfl_linux_proc_attach pid 12: Operation not permitted\n"),
            Threads{});
}

}  // namespace
}  // namespace rocemu
