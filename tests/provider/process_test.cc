// Tests how the provider recognizes its process after fork(), and what it must not do in a child.
#include "verbs_provider/base/process.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "tests/provider/fake_queues.h"
#include "verbs_provider/base/shared_memory.h"
#include "verbs_provider/base/verbs.h"

namespace rocemu::provider {
namespace {

template <class Act>
bool is_right_in_child(Act act) {
  const pid_t child = fork();
  if (child == 0) _exit(act() ? 0 : 1);
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

TEST(Process, HasANumberThatNoAncestorHad) {
  const uint64_t mine = this_process();
  EXPECT_EQ(this_process(), mine);
  EXPECT_TRUE(is_this_process(mine));
  EXPECT_FALSE(is_this_process(0));
  EXPECT_TRUE(is_right_in_child([&] {
    // tests the child also before it has called this_process()
    if (is_this_process(mine)) return false;
    const uint64_t childs = this_process();
    return childs != mine && !is_this_process(mine) && is_this_process(childs) &&
           is_right_in_child([&] { return !is_this_process(mine) && !is_this_process(childs); });
  }));
  EXPECT_TRUE(is_this_process(mine));
}

TEST(Process, IsAnotherAfterACloneThatTheCLibraryDoesNotKnowOf) {
  const uint64_t mine = this_process();
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) _exit(is_this_process(mine) ? 1 : 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// Returns a memory file of one page, like those of the daemon.
int page_of_a_file() {
  const int file = memfd_create("test", MFD_CLOEXEC);
  return ftruncate(file, 4096) == 0 ? file : -1;
}

// The child does not have the parent's mapping, but it may have mapped other memory at that
// address.
TEST(SharedMemory, IsUnmappedOnlyWhereItWasMapped) {
  const int file = page_of_a_file();
  SharedMemory memory;
  ASSERT_EQ(memory.map(file, 4096), 0);
  close(file);
  void* place = memory.at(0);
  EXPECT_TRUE(is_right_in_child([&] {
    if (mmap(place, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
             -1, 0) != place) {
      return false;
    }
    { const SharedMemory ended = std::move(memory); }
    return msync(place, 4096, MS_ASYNC) == 0;
  }));
  { const SharedMemory ended = std::move(memory); }
  EXPECT_EQ(msync(place, 4096, MS_ASYNC), -1) << "it is still mapped";
}

// The function is called as the application does it, through ContextOps.
TEST(Verb, ReturnsItsErrorInErrnoToo) {
  FakeQueues queues;
  queues.daemon_dies();
  ibv_modify_cq_attr attr{};
  attr.attr_mask = 1u << 9;
  errno = 0;
  EXPECT_EQ(kContextOps.modify_cq(queues.cq_base(), &attr), EINVAL);
  EXPECT_EQ(errno, EINVAL);
  errno = ERANGE;
  attr.attr_mask = 0;
  EXPECT_EQ(kContextOps.modify_cq(queues.cq_base(), &attr), 0);
  EXPECT_EQ(errno, ERANGE);
}

TEST(Verb, FailsInAChildBeforeItTakesALock) {
  FakeQueues queues;
  ibv_recv_wr wr{};
  ibv_recv_wr* bad = nullptr;
  ibv_wc wc;
  const Guard posting(queues.qp->recv.lock);
  const Guard polling(queues.cq->lock);
  EXPECT_TRUE(is_right_in_child([&] {
    alarm(30);
    return kContextOps.post_recv(queues.qp_base(), &wr, &bad) == EPERM && errno == EPERM &&
           kContextOps.poll_cq(queues.cq_base(), 1, &wc) < 0 &&
           kContextOps.req_notify_cq(queues.cq_base(), 0) == EPERM &&
           kContextOps.alloc_pd(queues.context()) == nullptr;
  }));
  EXPECT_EQ(queues.doorbell_count(), 0u);
}

}  // namespace
}  // namespace rocemu::provider
