// Tests errors of descriptors: the return code, the status bit, and the error callback.
#include "tests/vipl/vipl_fixture.h"

namespace rocemu::vipl_test {
namespace {

using Post = PairTest;

TEST_F(Post, ADescriptorThatCannotBeReadIsRefusedAndReported) {
  connect_pair();
  Errors errors(node.nic);
  VIP_DESCRIPTOR* right = node.descriptor(0);
  auto* misaligned = reinterpret_cast<VIP_DESCRIPTOR*>(reinterpret_cast<char*>(right) + 8);
  EXPECT_EQ(VipPostSend(a, misaligned, node.memory), VIP_INVALID_PARAMETER);
  const VIP_ERROR_DESCRIPTOR error = errors.wait_for(VIP_ERROR_POST_DESC);
  EXPECT_EQ(error.ResourceCode, VIP_RESOURCE_DESCRIPTOR);
  EXPECT_EQ(error.DescriptorPtr, misaligned);
  EXPECT_EQ(error.ViHandle, a);
  EXPECT_EQ(VipPostRecv(a, misaligned, node.memory), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipPostSend(a, right, node.memory + 1), VIP_INVALID_PARAMETER);  // no such handle
  alignas(64) static VIP_DESCRIPTOR elsewhere{};
  EXPECT_EQ(VipPostSend(a, &elsewhere, node.memory), VIP_INVALID_PARAMETER);
  auto* last = reinterpret_cast<VIP_DESCRIPTOR*>(node.data(kSlots - 1) + kSlotBytes - 256 - 64);
  last->CS.SegCount = 3;  // the third segment is beyond the end of the memory
  EXPECT_EQ(VipPostRecv(a, last, node.memory), VIP_INVALID_PARAMETER);
  EXPECT_TRUE(eventually([&] { return errors.count() == 5; }));
  EXPECT_EQ(state_of(a), VIP_STATE_CONNECTED);
}

TEST_F(Post, ADescriptorOfAnotherTagIsRefused) {
  VIP_PROTECTION_HANDLE tag = nullptr;
  ASSERT_EQ(VipCreatePtag(node.nic, &tag), VIP_SUCCESS);
  VIP_VI_ATTRIBUTES attributes = node.attributes();
  attributes.Ptag = tag;
  ASSERT_EQ(VipCreateVi(node.nic, &attributes, nullptr, nullptr, &a), VIP_SUCCESS);
  EXPECT_EQ(VipPostRecv(a, node.descriptor(0), node.memory), VIP_INVALID_PARAMETER);
}

TEST_F(Post, DataOfAnotherTagIsAProtectionError) {
  VIP_PROTECTION_HANDLE tag = nullptr;
  ASSERT_EQ(VipCreatePtag(node.nic, &tag), VIP_SUCCESS);
  VIP_MEM_ATTRIBUTES rights{tag, VIP_FALSE, VIP_FALSE};
  VIP_MEM_HANDLE foreign = 0;
  ASSERT_EQ(VipRegisterMem(node.nic, node.data(5), 64, &rights, &foreign), VIP_SUCCESS);
  connect_pair();
  Errors errors(node.nic);
  VIP_DESCRIPTOR* send = node.descriptor(5);
  send->DS[0].Local.Handle = foreign;
  post_send(a, send);
  EXPECT_EQ(sent(a, send), failure(VIP_STATUS_OP_SEND | VIP_STATUS_PROTECTION_ERROR));
  EXPECT_EQ(state_of(a), VIP_STATE_ERROR);
  EXPECT_EQ(errors.wait_for(VIP_ERROR_CONN_LOST).DescriptorPtr, send);
}

TEST_F(Post, DataThatIsNotRegisteredIsAProtectionError) {
  connect_pair();
  VIP_DESCRIPTOR* send = node.descriptor(0);
  send->DS[0].Local.Handle = node.memory + 1;
  post_send(a, send);
  EXPECT_EQ(sent(a, send), failure(VIP_STATUS_OP_SEND | VIP_STATUS_PROTECTION_ERROR));
  EXPECT_EQ(state_of(a), VIP_STATE_ERROR);
}

TEST_F(Post, WrongFormatsAreFormatErrors) {
  const auto outcome = [&](auto change) {
    connect_pair();
    VIP_DESCRIPTOR* wrong = node.descriptor(0);
    change(*wrong);
    post_send(a, wrong);
    return sent(a, wrong).second & VIP_STATUS_ERROR_MASK;
  };
  using Wrong = VIP_DESCRIPTOR&;
  const VIP_UINT32 format = VIP_STATUS_FORMAT_ERROR;
  EXPECT_EQ(outcome([](Wrong of) { of.CS.SegCount = 18; }), format);
  EXPECT_EQ(outcome([](Wrong of) { of.CS.SegCount = 65535; }), format);
  EXPECT_EQ(outcome([](Wrong of) { of.CS.Control = VIP_CONTROL_OP_RESERVED; }), format);
  EXPECT_EQ(outcome([](Wrong of) { of.CS.Control = 0x10; }), format);
  EXPECT_EQ(outcome([](Wrong of) {
              of.CS.Control = VIP_CONTROL_OP_RDMAWRITE;
              of.CS.SegCount = 0;  // an RDMA needs at least its address segment
            }),
            format);
  EXPECT_EQ(outcome([](Wrong of) {
              of.CS.Control = VIP_CONTROL_OP_RDMAREAD | VIP_CONTROL_IMMEDIATE;
              of.CS.SegCount = 2;
            }),
            format);
}

TEST_F(Post, AReceiveThatAsksForRdmaIsAFormatErrorAndAnIdleViStaysIdle) {
  a = node.vi();
  VIP_DESCRIPTOR* wrong = node.descriptor(0);
  wrong->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
  post_recv(a, wrong);
  EXPECT_EQ(received(a, wrong), failure(VIP_STATUS_OP_RECEIVE | VIP_STATUS_FORMAT_ERROR));
  EXPECT_EQ(state_of(a), VIP_STATE_IDLE);
}

TEST_F(Post, RequestsAfterAnErrorAreFlushed) {
  connect_pair();
  for (size_t i = 0; i < 2; ++i) post_recv(b, node.descriptor(20 + i));
  VIP_DESCRIPTOR* good = node.descriptor(0);
  VIP_DESCRIPTOR* wrong = node.descriptor(1);
  VIP_DESCRIPTOR* behind = node.descriptor(2);
  wrong->CS.SegCount = 99;
  post_send(a, good);
  post_send(a, wrong);
  post_send(a, behind);
  EXPECT_EQ(sent(a, good), success(VIP_STATUS_OP_SEND));
  EXPECT_EQ(sent(a, wrong), failure(VIP_STATUS_OP_SEND | VIP_STATUS_FORMAT_ERROR));
  EXPECT_EQ(sent(a, behind), failure(VIP_STATUS_OP_SEND | VIP_STATUS_DESC_FLUSHED_ERROR));
}

TEST_F(Post, AMessageLongerThanMaxTransferSizeIsALengthError) {
  connect_pair();
  VIP_DESCRIPTOR* send = node.descriptor(0, kMaxTransfer + 1);
  post_send(a, send);
  EXPECT_EQ(sent(a, send), failure(VIP_STATUS_OP_SEND | VIP_STATUS_LENGTH_ERROR));
}

TEST_F(Post, AnUnreliableViOutlivesItsOwnErrors) {
  connect_pair(VIP_SERVICE_UNRELIABLE);
  VIP_DESCRIPTOR* wrong = node.rdma(VIP_CONTROL_OP_RDMAREAD, 0, node, 1);  // UC has none
  post_send(a, wrong);
  EXPECT_EQ(sent(a, wrong), failure(VIP_STATUS_OP_RDMA_READ | VIP_STATUS_FORMAT_ERROR));
  EXPECT_EQ(state_of(a), VIP_STATE_CONNECTED);
  VIP_DESCRIPTOR* recv = node.descriptor(2);
  VIP_DESCRIPTOR* send = node.descriptor(3);
  post_recv(b, recv);
  post_send(a, send);
  EXPECT_EQ(sent(a, send), success(VIP_STATUS_OP_SEND));
  EXPECT_EQ(received(b, recv), success(VIP_STATUS_OP_RECEIVE));
}

TEST_F(Post, AMessageThatDoesNotFitEndsTheConnectionOnBothSides) {
  connect_pair();
  VIP_DESCRIPTOR* recv = node.descriptor(0, 10);
  VIP_DESCRIPTOR* send = node.descriptor(1, 11);
  post_recv(b, recv);
  post_send(a, send);
  EXPECT_EQ(sent(a, send), failure(VIP_STATUS_OP_SEND | VIP_STATUS_REMOTE_DESC_ERROR));
  EXPECT_EQ(received(b, recv), failure(VIP_STATUS_OP_RECEIVE | VIP_STATUS_LENGTH_ERROR));
  EXPECT_EQ(state_of(a), VIP_STATE_ERROR);
  EXPECT_EQ(state_of(b), VIP_STATE_ERROR);
}

TEST_F(Post, AMessageForWhichNothingIsPostedEndsAReliableConnection) {
  connect_pair();
  Errors errors(node.nic);
  VIP_DESCRIPTOR* send = node.descriptor(1);
  post_send(a, send);
  EXPECT_EQ(sent(a, send), failure(VIP_STATUS_OP_SEND | VIP_STATUS_REMOTE_DESC_ERROR));
  errors.wait_for(VIP_ERROR_CONN_LOST);
  EXPECT_TRUE(eventually([&] { return state_of(b) == VIP_STATE_ERROR; }));
}

TEST_F(Post, AMessageForWhichNothingIsPostedIsLostOnAnUnreliableOne) {
  connect_pair(VIP_SERVICE_UNRELIABLE);
  VIP_DESCRIPTOR* send = node.descriptor(1);
  post_send(a, send);
  EXPECT_EQ(sent(a, send), success(VIP_STATUS_OP_SEND));
  EXPECT_EQ(state_of(a), VIP_STATE_CONNECTED);
  EXPECT_EQ(state_of(b), VIP_STATE_CONNECTED);
}

TEST_F(Post, RdmaToMemoryThatForbidsItIsAnRdmaProtectionError) {
  VIP_MEM_ATTRIBUTES rights{node.ptag, VIP_FALSE, VIP_FALSE};
  VIP_MEM_HANDLE closed = 0;
  ASSERT_EQ(VipRegisterMem(node.nic, node.data(5), 64, &rights, &closed), VIP_SUCCESS);
  connect_pair();
  Errors errors(node.nic);
  VIP_DESCRIPTOR* write = node.rdma(VIP_CONTROL_OP_RDMAWRITE, 1, node, 5);
  write->DS[0].Remote.Handle = closed;
  post_send(a, write);
  EXPECT_EQ(sent(a, write), failure(VIP_STATUS_OP_RDMA_WRITE | VIP_STATUS_RDMA_PROT_ERROR));
  EXPECT_EQ(errors.wait_for(VIP_ERROR_RDMAW_PROT).ViHandle, b);
}

TEST_F(Post, ADescriptorWhoseMemoryIsGoneIsReportedAndNotWritten) {
  connect_pair();
  Errors errors(node.nic);
  alignas(64) static char block[128];
  VIP_MEM_ATTRIBUTES rights{node.ptag, VIP_FALSE, VIP_FALSE};
  VIP_MEM_HANDLE handle = 0;
  ASSERT_EQ(VipRegisterMem(node.nic, block, sizeof block, &rights, &handle), VIP_SUCCESS);
  auto* recv = reinterpret_cast<VIP_DESCRIPTOR*>(block);
  *recv = *node.descriptor(0);
  ASSERT_EQ(VipPostRecv(b, recv, handle), VIP_SUCCESS);
  ASSERT_EQ(VipDeregisterMem(node.nic, block, handle), VIP_SUCCESS);
  post_send(a, node.descriptor(1));
  VIP_DESCRIPTOR* done = nullptr;
  // the data arrived before the memory was deregistered
  EXPECT_EQ(VipRecvWait(b, kPatienceMs, &done), VIP_SUCCESS);
  EXPECT_EQ(done, recv);
  EXPECT_EQ(recv->CS.Status, 0u);
  EXPECT_EQ(errors.wait_for(VIP_ERROR_COMP_PROT).DescriptorPtr, recv);
}

TEST_F(Post, MoreDescriptorsThanAQueueHoldsAreRefusedAndReported) {
  a = node.vi();
  Errors errors(node.nic);
  for (int i = 0; i < 1024; ++i) post_recv(a, node.descriptor(0));
  EXPECT_EQ(VipPostRecv(a, node.descriptor(0), node.memory), VIP_ERROR_RESOURCE);
  EXPECT_EQ(errors.wait_for(VIP_ERROR_VI_OVERRUN).ViHandle, a);
}

TEST_F(Post, InvalidHandlesAreRefused) {
  VIP_DESCRIPTOR* descriptor = node.descriptor(0);
  VIP_DESCRIPTOR* done = nullptr;
  a = node.vi();
  ASSERT_EQ(VipDestroyVi(a), VIP_SUCCESS);
  for (VIP_VI_HANDLE wrong :
       {static_cast<VIP_VI_HANDLE>(nullptr), a, node.nic, static_cast<VIP_VI_HANDLE>(descriptor)}) {
    EXPECT_EQ(VipPostSend(wrong, descriptor, node.memory), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipPostRecv(wrong, descriptor, node.memory), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipSendDone(wrong, &done), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipRecvDone(wrong, &done), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipSendWait(wrong, 1, &done), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipRecvWait(wrong, 1, &done), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipSendNotify(wrong, nullptr, nullptr), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipRecvNotify(wrong, nullptr, nullptr), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipDisconnect(wrong), VIP_INVALID_PARAMETER);
    EXPECT_EQ(VipErrorCallback(wrong == node.nic ? nullptr : wrong, nullptr, nullptr),
              VIP_INVALID_PARAMETER);
  }
  b = node.vi();
  EXPECT_EQ(VipPostSend(b, nullptr, node.memory), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipRecvDone(b, nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipRecvWait(b, 1, nullptr), VIP_INVALID_PARAMETER);
}

}  // namespace
}  // namespace rocemu::vipl_test
