// Tests VipCreateCQ, VipDestroyCQ, VipResizeCQ, VipCQDone and VipCQWait.
#include "tests/vipl/vipl_fixture.h"

namespace rocemu::vipl_test {
namespace {

class CompletionQueue : public PairTest {
 protected:
  void SetUp() override {
    cq = node.cq();
    a = node.vi();
    b = node.vi(VIP_SERVICE_RELIABLE_DELIVERY, cq, cq);
    connect(node, a, node, b);
  }
  VIP_CQ_HANDLE cq = nullptr;
  VIP_VI_HANDLE vi = nullptr;
  VIP_BOOLEAN recv = -1;
};

TEST_F(CompletionQueue, TellsWhichWorkQueueHasACompletedDescriptor) {
  EXPECT_EQ(VipCQDone(cq, &vi, &recv), VIP_NOT_DONE);
  VIP_DESCRIPTOR* in = node.descriptor(0);
  post_recv(b, in);
  post_send(a, node.descriptor(1));
  EXPECT_EQ(VipCQWait(cq, kPatienceMs, &vi, &recv), VIP_SUCCESS);
  EXPECT_EQ(vi, b);
  EXPECT_EQ(recv, VIP_TRUE);
  VIP_DESCRIPTOR* done = nullptr;
  // VipCQDone() has left the descriptor in its work queue
  EXPECT_EQ(VipRecvDone(b, &done), VIP_SUCCESS);
  EXPECT_EQ(done, in);

  post_recv(a, node.descriptor(2));
  VIP_DESCRIPTOR* out = node.descriptor(3);
  post_send(b, out);
  ASSERT_TRUE(eventually([&] { return VipCQDone(cq, &vi, &recv) == VIP_SUCCESS; }));
  EXPECT_EQ(vi, b);
  EXPECT_EQ(recv, VIP_FALSE);
  EXPECT_EQ(VipSendDone(b, &done), VIP_SUCCESS);
  EXPECT_EQ(done, out);
  EXPECT_EQ(VipCQDone(cq, &vi, &recv), VIP_NOT_DONE);
}

TEST_F(CompletionQueue, EntriesOfSeveralVisComeInTheOrderOfCompletion) {
  VIP_VI_HANDLE c = node.vi();
  VIP_VI_HANDLE d = node.vi(VIP_SERVICE_RELIABLE_DELIVERY, nullptr, cq);
  connect(node, c, node, d);
  for (size_t i = 0; i < 10; ++i) {
    post_recv(b, node.descriptor(2 * i));
    post_recv(d, node.descriptor(2 * i + 1));
  }
  std::vector<VIP_VI_HANDLE> expected;
  for (size_t i = 0; i < 10; ++i) {
    VIP_VI_HANDLE from = i % 3 == 0 ? a : c;
    VIP_DESCRIPTOR* send = node.descriptor(30 + i);
    post_send(from, send);
    sent(from, send);  // this message arrives before the next one is sent
    expected.push_back(from == a ? b : d);
  }
  std::vector<VIP_VI_HANDLE> got;
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(VipCQWait(cq, kPatienceMs, &vi, &recv), VIP_SUCCESS);
    got.push_back(vi);
  }
  EXPECT_EQ(got, expected);
}

TEST_F(CompletionQueue, WaitingEndsWithTheTimeoutAndWithTheQueue) {
  EXPECT_EQ(VipCQWait(cq, 0, &vi, &recv), VIP_TIMEOUT);
  EXPECT_EQ(VipCQWait(cq, 20, &vi, &recv), VIP_TIMEOUT);
  VIP_CQ_HANDLE other = node.cq();
  std::thread waiting([&] {
    VIP_VI_HANDLE of = nullptr;
    VIP_BOOLEAN which = 0;
    EXPECT_EQ(VipCQWait(other, VIP_INFINITE, &of, &which), VIP_INVALID_PARAMETER);
  });
  // makes it likely that the thread sleeps
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(VipDestroyCQ(other), VIP_SUCCESS);
  waiting.join();
}

TEST_F(CompletionQueue, SeveralThreadsWaitAndEachEntryIsForOne) {
  constexpr size_t kThreads = 4;
  constexpr size_t kMessages = 32;
  for (size_t i = 0; i < kMessages; ++i) post_recv(b, node.descriptor(i));
  std::atomic<size_t> entries{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (size_t i = 0; i < kMessages / kThreads; ++i) {
        VIP_VI_HANDLE of = nullptr;
        VIP_BOOLEAN which = 0;
        if (VipCQWait(cq, kPatienceMs, &of, &which) == VIP_SUCCESS && of == b) ++entries;
      }
    });
  }
  for (size_t i = 0; i < kMessages; ++i) {
    VIP_DESCRIPTOR* send = node.descriptor(40);
    post_send(a, send);
    sent(a, send);
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(entries, kMessages);
}

TEST_F(CompletionQueue, CannotBeDestroyedWhileWorkQueuesBelongToIt) {
  EXPECT_EQ(VipDestroyCQ(cq), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipDisconnect(b), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyVi(b), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyCQ(cq), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyCQ(cq), VIP_INVALID_PARAMETER);
}

TEST_F(CompletionQueue, GrowsAndShrinksButNotBelowItsEntries) {
  EXPECT_EQ(VipResizeCQ(cq, 500), VIP_SUCCESS);
  for (size_t i = 0; i < 4; ++i) {
    post_recv(b, node.descriptor(i));
    VIP_DESCRIPTOR* send = node.descriptor(10 + i);
    post_send(a, send);
    sent(a, send);
  }
  EXPECT_EQ(VipResizeCQ(cq, 3), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipResizeCQ(cq, 4), VIP_SUCCESS);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(VipCQDone(cq, &vi, &recv), VIP_SUCCESS);
  EXPECT_EQ(VipResizeCQ(cq, 0), VIP_INVALID_PARAMETER);
}

TEST_F(CompletionQueue, FlushedDescriptorsHaveEntriesToo) {
  post_recv(b, node.descriptor(0));
  EXPECT_EQ(VipDisconnect(b), VIP_SUCCESS);
  EXPECT_EQ(VipCQDone(cq, &vi, &recv), VIP_SUCCESS);
  VIP_DESCRIPTOR* done = nullptr;
  EXPECT_EQ(VipRecvDone(vi, &done), VIP_DESCRIPTOR_ERROR);
  EXPECT_EQ(done->CS.Status,
            VIP_UINT32{VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE | VIP_STATUS_DESC_FLUSHED_ERROR});
}

TEST_F(CompletionQueue, WrongArgumentsAreRefused) {
  VIP_CQ_HANDLE made = nullptr;
  EXPECT_EQ(VipCreateCQ(nullptr, 10, &made), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreateCQ(node.nic, 0, &made), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreateCQ(node.nic, 10, nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreateCQ(node.nic, ~VIP_ULONG{0}, &made), VIP_ERROR_RESOURCE);
  for (VIP_CQ_HANDLE wrong : {static_cast<VIP_CQ_HANDLE>(nullptr), static_cast<VIP_CQ_HANDLE>(b),
                              static_cast<VIP_CQ_HANDLE>(this)}) {
    EXPECT_EQ(VipDestroyCQ(wrong), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipResizeCQ(wrong, 10), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipCQDone(wrong, &vi, &recv), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipCQWait(wrong, 0, &vi, &recv), VIP_INVALID_PARAMETER);
  }
  EXPECT_EQ(VipCQDone(cq, nullptr, &recv), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCQWait(cq, 0, &vi, nullptr), VIP_INVALID_PARAMETER);
}

}  // namespace
}  // namespace rocemu::vipl_test
