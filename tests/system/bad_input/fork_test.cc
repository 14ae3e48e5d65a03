// Tests fork() in programs that use verbs. A child that only exits disturbs no process; the objects
// that it inherits belong to its parent.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

class Fork : public TransportTest {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    qp = make_qp({});
    ASSERT_NO_FATAL_FAILURE(bring_up(qp.get(), qp->qp_num));
  }
  /// Sends a message from the QP to itself. Returns whether it arrived unchanged.
  bool exchange(uint64_t i) {
    const auto byte = static_cast<uint8_t>(i);
    std::memset(slot(0), byte, 3000);
    if (post_recv(qp.get(), 2 * i) != 0 || post_send(qp.get(), 2 * i + 1, IBV_SEND_SIGNALED, 3000))
      return false;
    for (const ibv_wc& wc : poll_for(cq.get(), 2)) {
      if (wc.status != IBV_WC_SUCCESS) return false;
    }
    return slot(1)[0] == byte && slot(1)[2999] == byte;
  }
  template <class Act>
  static void expect_child(Act act) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) _exit(act() ? 0 : 1);
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }

  QpPtr qp;
};

TEST_F(Fork, AChildThatGoesAwayLeavesTheParentsObjects) {
  for (uint64_t i = 0; i < 20; ++i) {
    expect_child([] { return true; });
    EXPECT_TRUE(exchange(i));
  }
}

TEST_F(Fork, WithRequestsInProgressLosesNone) {
  for (uint64_t i = 0; i < 20; ++i) {
    for (uint64_t k = 0; k < 8; ++k) ASSERT_EQ(post_recv(qp.get(), k), 0);
    for (uint64_t k = 0; k < 8; ++k) ASSERT_EQ(post_send(qp.get(), k), 0);
    const pid_t child = fork();
    if (child == 0) _exit(0);
    const auto found = poll_for(cq.get(), 16);
    EXPECT_EQ(found.size(), 16u);
    for (const ibv_wc& wc : found) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
  }
}

// Memory is not pinned. If a child shares pages with its parent until one of them writes, the NIC
// must still use the parent's pages (the subject of ibv_fork_init(3)).
TEST_F(Fork, TheParentsMemoryIsReachedAlthoughTheChildHasACopy) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    close(ends[1]);
    const bool ended = read(ends[0], &byte, 1) == 0;  // ends when the parent closes its end
    _exit(ended && slot(1)[0] == 0 ? 0 : 1);
  }
  close(ends[0]);
  for (uint64_t i = 1; i < 50; ++i) EXPECT_TRUE(exchange(i));
  close(ends[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child's copy is as it was";
}

TEST_F(Fork, AChildMayOpenTheDeviceForItself) {
  expect_child([this] {
    const ContextPtr own = open_device();
    if (own == nullptr) return false;
    const PdPtr domain(ibv_alloc_pd(own.get()));
    const CqPtr queue(ibv_create_cq(own.get(), 4, nullptr, nullptr, 0));
    // The child's handles differ from those of the parent.
    return domain != nullptr && queue != nullptr && domain->handle != pd->handle;
  });
  EXPECT_TRUE(exchange(1));
}

TEST_F(Fork, WhileOtherThreadsUseVerbs) {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done) {
        const CqPtr other = create_cq(4);
        ibv_port_attr port;
        EXPECT_EQ(ibv_query_port(context.get(), 1, &port), 0);
      }
    });
  }
  for (uint64_t i = 0; i < 30; ++i) {
    // Another thread may be using the daemon's connection at this moment. The child can use verbs
    // nevertheless.
    expect_child([this] {
      ibv_port_attr port;
      return ibv_query_port(context.get(), 1, &port) == 0;
    });
    EXPECT_TRUE(exchange(i));
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace rocemu::system_test
