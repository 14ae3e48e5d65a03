// Tests VipPostSend, VipPostRecv, VipSendDone, VipRecvDone, VipSendWait and VipRecvWait.
#include "tests/vipl/vipl_fixture.h"

namespace rocemu::vipl_test {
namespace {

using Transfer = PairTest;

TEST_F(Transfer, AMessageArrivesAndBothDescriptorsSayHowLongItWas) {
  connect_pair();
  VIP_DESCRIPTOR* recv = node.descriptor(0, 1000);
  VIP_DESCRIPTOR* send = node.descriptor(1, 300);
  std::memset(node.data(1), 'x', 300);
  post_recv(b, recv);
  post_send(a, send);
  EXPECT_EQ(sent(a, send), success(VIP_STATUS_OP_SEND));
  EXPECT_EQ(received(b, recv), success(VIP_STATUS_OP_RECEIVE));
  EXPECT_EQ(send->CS.Length, 300u);
  EXPECT_EQ(recv->CS.Length, 300u);
  EXPECT_EQ(std::string(node.data(0), 300), std::string(300, 'x'));
}

TEST_F(Transfer, AllReliabilityLevelsCarryMessages) {
  for (const VIP_RELIABILITY_LEVEL level : std::initializer_list<VIP_RELIABILITY_LEVEL>{
           VIP_SERVICE_UNRELIABLE, VIP_SERVICE_RELIABLE_DELIVERY, VIP_SERVICE_RELIABLE_RECEPTION}) {
    connect_pair(level);
    VIP_DESCRIPTOR* recv = node.descriptor(0);
    VIP_DESCRIPTOR* send = node.descriptor(1);
    post_recv(b, recv);
    post_send(a, send);
    EXPECT_EQ(sent(a, send), success(VIP_STATUS_OP_SEND)) << level;
    EXPECT_EQ(received(b, recv), success(VIP_STATUS_OP_RECEIVE)) << level;
  }
}

TEST_F(Transfer, SegmentsAreGatheredAndScattered) {
  connect_pair();
  VIP_DESCRIPTOR* send = node.descriptor(0);
  send->CS.SegCount = 3;
  const char* parts[] = {"one ", "", "two"};
  for (int i = 0; i < 3; ++i) {
    const size_t length = std::strlen(parts[i]);
    std::memcpy(node.data(0) + 100 * i, parts[i], length);
    send->DS[i].Local.Data.Address = node.data(0) + 100 * i;
    send->DS[i].Local.Handle = node.memory;
    send->DS[i].Local.Length = static_cast<VIP_UINT32>(length);
  }
  VIP_DESCRIPTOR* recv = node.descriptor(1, 2);
  recv->CS.SegCount = 2;
  recv->DS[1] = recv->DS[0];
  recv->DS[1].Local.Data.Address = node.data(2);
  recv->DS[1].Local.Length = 100;
  post_recv(b, recv);
  post_send(a, send);
  EXPECT_EQ(received(b, recv), success(VIP_STATUS_OP_RECEIVE));
  EXPECT_EQ(recv->CS.Length, 7u);
  EXPECT_EQ(std::string(node.data(1), 2) + std::string(node.data(2), 5), "one two");
}

TEST_F(Transfer, ImmediateDataComesWithAMessageAlsoWithAnEmptyOne) {
  connect_pair();
  for (const VIP_UINT32 length : {64u, 0u}) {
    VIP_DESCRIPTOR* recv = node.descriptor(0);
    VIP_DESCRIPTOR* send = node.descriptor(1, length);
    send->CS.Control = VIP_CONTROL_IMMEDIATE;
    send->CS.ImmediateData = 0xfeedbeef;
    if (length == 0) send->CS.SegCount = 0;
    post_recv(b, recv);
    post_send(a, send);
    EXPECT_EQ(sent(a, send), success(VIP_STATUS_OP_SEND));
    EXPECT_EQ(received(b, recv), success(VIP_STATUS_OP_RECEIVE | VIP_STATUS_IMMEDIATE));
    EXPECT_EQ(recv->CS.ImmediateData, 0xfeedbeef);
    EXPECT_EQ(recv->CS.Length, length);
  }
}

TEST_F(Transfer, AnRdmaWriteTakesNoDescriptorOfThePeer) {
  connect_pair();
  std::strcpy(node.data(1), "written");
  VIP_DESCRIPTOR* write = node.rdma(VIP_CONTROL_OP_RDMAWRITE, 1, node, 2, 8);
  post_send(a, write);
  EXPECT_EQ(sent(a, write), success(VIP_STATUS_OP_RDMA_WRITE));
  EXPECT_EQ(write->CS.Length, 8u);
  EXPECT_STREQ(node.data(2), "written");
  VIP_DESCRIPTOR* none = node.descriptor(0);
  EXPECT_EQ(VipRecvDone(b, &none), VIP_DESCRIPTOR_ERROR);
  EXPECT_EQ(none, nullptr);
}

TEST_F(Transfer, AnRdmaWriteWithImmediateDataTakesOne) {
  connect_pair();
  VIP_DESCRIPTOR* recv = node.descriptor(0);
  post_recv(b, recv);
  VIP_DESCRIPTOR* write = node.rdma(VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE, 1, node, 2);
  write->CS.ImmediateData = 7;
  post_send(a, write);
  EXPECT_EQ(sent(a, write), success(VIP_STATUS_OP_RDMA_WRITE));
  EXPECT_EQ(received(b, recv), success(VIP_STATUS_OP_REMOTE_RDMA_WRITE | VIP_STATUS_IMMEDIATE));
  EXPECT_EQ(recv->CS.ImmediateData, 7u);
  EXPECT_EQ(recv->CS.Length, 64u);
}

TEST_F(Transfer, AnRdmaReadBringsThePeersBytes) {
  connect_pair();
  std::strcpy(node.data(2), "there");
  VIP_DESCRIPTOR* read = node.rdma(VIP_CONTROL_OP_RDMAREAD, 1, node, 2, 6);
  post_send(a, read);
  EXPECT_EQ(sent(a, read), success(VIP_STATUS_OP_RDMA_READ));
  EXPECT_STREQ(node.data(1), "there");
}

TEST_F(Transfer, AFencedDescriptorSendsTheDataOfTheReadBeforeIt) {
  connect_pair();
  std::strcpy(node.data(2), "fresh");
  std::strcpy(node.data(1), "stale");
  VIP_DESCRIPTOR* recv = node.descriptor(0);
  post_recv(b, recv);
  VIP_DESCRIPTOR* read = node.rdma(VIP_CONTROL_OP_RDMAREAD, 1, node, 2, 6);
  VIP_DESCRIPTOR* send = node.descriptor(3, 6);
  send->CS.Control = VIP_CONTROL_QFENCE;
  send->DS[0].Local.Data.Address = node.data(1);
  post_send(a, read);
  post_send(a, send);
  EXPECT_EQ(received(b, recv), success(VIP_STATUS_OP_RECEIVE));
  EXPECT_STREQ(node.data(0), "fresh");
}

TEST_F(Transfer, PostingLinksEachDescriptorToTheOneBehindIt) {
  a = node.vi();
  for (size_t slot = 0; slot < 3; ++slot) {
    VIP_DESCRIPTOR* descriptor = node.descriptor(slot);
    descriptor->CS.Next.AddressBits = 0xdead;  // an old value, which the program need not clear
    post_recv(a, descriptor);
  }
  const auto* first = reinterpret_cast<VIP_DESCRIPTOR*>(node.data(0) - 256);
  const VIP_DESCRIPTOR* second = first->CS.Next.Descriptor;
  EXPECT_EQ(static_cast<const void*>(second), node.data(1) - 256);
  EXPECT_EQ(first->CS.NextHandle, node.memory);
  EXPECT_EQ(static_cast<const void*>(second->CS.Next.Address), node.data(2) - 256);
  EXPECT_EQ(second->CS.Next.Descriptor->CS.Next.AddressBits, 0u);
}

TEST_F(Transfer, DescriptorsComeBackInTheOrderOfPosting) {
  connect_pair();
  constexpr size_t kCount = 20;
  for (size_t i = 0; i < kCount; ++i) post_recv(b, node.descriptor(i));
  for (size_t i = 0; i < kCount; ++i) post_send(a, node.descriptor(kCount + i));
  for (size_t i = 0; i < kCount; ++i) {
    VIP_DESCRIPTOR* done = nullptr;
    EXPECT_EQ(VipRecvWait(b, kPatienceMs, &done), VIP_SUCCESS);
    EXPECT_EQ(static_cast<void*>(done), node.data(i) - 256);
    EXPECT_EQ(VipSendWait(a, kPatienceMs, &done), VIP_SUCCESS);
    EXPECT_EQ(static_cast<void*>(done), node.data(kCount + i) - 256);
  }
}

TEST_F(Transfer, DoneDoesNotBlockAndSaysWhetherAnythingIsPosted) {
  connect_pair();
  VIP_DESCRIPTOR* done = node.descriptor(0);
  EXPECT_EQ(VipSendDone(a, &done), VIP_DESCRIPTOR_ERROR);
  EXPECT_EQ(done, nullptr);
  VIP_DESCRIPTOR* recv = node.descriptor(0);
  post_recv(b, recv);
  EXPECT_EQ(VipRecvDone(b, &done), VIP_NOT_DONE);
  EXPECT_EQ(recv->CS.Status, 0u);
  post_send(a, node.descriptor(1));
  ASSERT_TRUE(eventually([&] { return VipRecvDone(b, &done) == VIP_SUCCESS; }));
  EXPECT_EQ(done, recv);
}

TEST_F(Transfer, WaitingEndsWithTheTimeout) {
  connect_pair();
  VIP_DESCRIPTOR* done = nullptr;
  post_recv(b, node.descriptor(0));
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(VipRecvWait(b, 30, &done), VIP_TIMEOUT);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(30));
  EXPECT_EQ(VipRecvWait(b, 0, &done), VIP_TIMEOUT);
}

TEST_F(Transfer, WaitersOfBothQueuesAreWokenByTheirDescriptors) {
  connect_pair();
  post_recv(a, node.descriptor(0));
  post_recv(b, node.descriptor(1));
  std::thread waiting([&] {
    VIP_DESCRIPTOR* done = nullptr;
    EXPECT_EQ(VipRecvWait(a, VIP_INFINITE, &done), VIP_SUCCESS);
  });
  for (int round = 0; round < 50; ++round) {  // meanwhile another thread sleeps on the same ibv_cq
    VIP_DESCRIPTOR* send = node.descriptor(2);
    post_send(a, send);
    EXPECT_EQ(sent(a, send), success(VIP_STATUS_OP_SEND));
    VIP_DESCRIPTOR* done = nullptr;
    EXPECT_EQ(VipRecvWait(b, VIP_INFINITE, &done), VIP_SUCCESS);
    post_recv(b, node.descriptor(1));
  }
  post_send(b, node.descriptor(3));
  waiting.join();
}

TEST_F(Transfer, WaitingOnAQueueWithACompletionQueueIsRefused) {
  VIP_CQ_HANDLE cq = node.cq();
  a = node.vi(VIP_SERVICE_RELIABLE_DELIVERY, nullptr, cq);
  VIP_DESCRIPTOR* done = nullptr;
  post_recv(a, node.descriptor(0));
  EXPECT_EQ(VipRecvWait(a, 0, &done), VIP_ERROR_RESOURCE);
  EXPECT_EQ(
      VipRecvNotify(a, nullptr, [](VIP_PVOID, VIP_NIC_HANDLE, VIP_VI_HANDLE, VIP_DESCRIPTOR*) {}),
      VIP_ERROR_RESOURCE);
}

struct Notified {
  Calls calls;
  static void add(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR* done) {
    static_cast<Notified*>(context)->calls.add(
        {context, nic, vi, done, VIP_FALSE, std::this_thread::get_id()});
  }
};

TEST_F(Transfer, ANotifyHandlerGetsTheDescriptorThatIsComplete) {
  connect_pair();
  Notified notified;
  VIP_DESCRIPTOR* recv = node.descriptor(0);
  VIP_DESCRIPTOR* send = node.descriptor(1);
  post_recv(b, recv);
  // the registration precedes the completion of the receive
  EXPECT_EQ(VipRecvNotify(b, &notified, &Notified::add), VIP_SUCCESS);
  EXPECT_EQ(notified.calls.count(), 0u);
  post_send(a, send);
  const auto call = notified.calls.wait_for(1)[0];
  EXPECT_EQ(call.nic, node.nic);
  EXPECT_EQ(call.vi, b);
  EXPECT_EQ(call.descriptor, recv);
  EXPECT_EQ(recv->CS.Status, VIP_UINT32{VIP_STATUS_DONE | VIP_STATUS_OP_RECEIVE});
  VIP_DESCRIPTOR* done = nullptr;
  // the notification has removed the descriptor from the queue
  EXPECT_EQ(VipRecvDone(b, &done), VIP_DESCRIPTOR_ERROR);
  EXPECT_EQ(VipSendNotify(a, &notified, &Notified::add), VIP_SUCCESS);  // after
  EXPECT_EQ(notified.calls.wait_for(2)[1].descriptor, send);
}

TEST_F(Transfer, ANotifyHandlerRegistersItselfAgain) {
  connect_pair();
  struct Again {
    std::atomic<int> calls{0};
    static void add(VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE vi, VIP_DESCRIPTOR* done) {
      auto* self = static_cast<Again*>(context);
      EXPECT_EQ(done->CS.Status & VIP_STATUS_ERROR_MASK, 0u);
      if (++self->calls < 10) {
        EXPECT_EQ(VipRecvNotify(vi, context, &Again::add), VIP_SUCCESS);
      }
    }
  } again;
  for (size_t i = 0; i < 10; ++i) post_recv(b, node.descriptor(i));
  EXPECT_EQ(VipRecvNotify(b, &again, &Again::add), VIP_SUCCESS);
  for (size_t i = 0; i < 10; ++i) post_send(a, node.descriptor(10 + i));
  EXPECT_TRUE(eventually([&] { return again.calls == 10; }));
}

}  // namespace
}  // namespace rocemu::vipl_test
