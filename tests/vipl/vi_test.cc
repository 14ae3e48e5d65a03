// Tests VipCreateVi, VipDestroyVi, VipQueryVi and VipSetViAttributes.
#include "tests/vipl/vipl_fixture.h"

namespace rocemu::vipl_test {
namespace {

using VirtualInterface = PairTest;

TEST_F(VirtualInterface, IsIdleAndEmptyWhenItIsMade) {
  VIP_CQ_HANDLE cq = node.cq();
  a = node.vi(VIP_SERVICE_RELIABLE_RECEPTION, cq, nullptr);
  VIP_VI_STATE state{};
  VIP_VI_ATTRIBUTES attributes{};
  VIP_BOOLEAN send = 0, recv = 0;
  ASSERT_EQ(VipQueryVi(a, &state, &attributes, &send, &recv), VIP_SUCCESS);
  EXPECT_EQ(state, VIP_STATE_IDLE);
  EXPECT_EQ(attributes.ReliabilityLevel, VIP_SERVICE_RELIABLE_RECEPTION);
  EXPECT_EQ(attributes.Ptag, node.ptag);
  EXPECT_TRUE(send && recv);
  post_recv(a, node.descriptor(0));
  ASSERT_EQ(VipQueryVi(a, &state, &attributes, &send, &recv), VIP_SUCCESS);
  EXPECT_TRUE(send);
  EXPECT_FALSE(recv);
}

TEST_F(VirtualInterface, CannotBeMadeOfWrongAttributes) {
  const auto made_of = [&](auto change) {
    VIP_VI_ATTRIBUTES attributes = node.attributes();
    change(attributes);
    return VipCreateVi(node.nic, &attributes, nullptr, nullptr, &a);
  };
  using Attributes = VIP_VI_ATTRIBUTES&;
  EXPECT_EQ(made_of([](Attributes of) { of.ReliabilityLevel = 0; }), VIP_INVALID_RELIABILITY_LEVEL);
  EXPECT_EQ(made_of([](Attributes of) { of.ReliabilityLevel = 6; }), VIP_INVALID_RELIABILITY_LEVEL);
  EXPECT_EQ(made_of([](Attributes of) { of.MaxTransferSize = 1ul << 40; }), VIP_INVALID_MTU);
  EXPECT_EQ(made_of([](Attributes of) { of.QoS = &of; }), VIP_INVALID_QOS);
  EXPECT_EQ(made_of([](Attributes of) { of.Ptag = nullptr; }), VIP_INVALID_PTAG);
  EXPECT_EQ(made_of([](Attributes of) { of.Ptag = &of; }), VIP_INVALID_PTAG);
  EXPECT_EQ(made_of([](Attributes of) { of.ReliabilityLevel = VIP_SERVICE_UNRELIABLE; }),
            VIP_INVALID_RDMAREAD);
  VIP_VI_ATTRIBUTES right = node.attributes();
  EXPECT_EQ(VipCreateVi(nullptr, &right, nullptr, nullptr, &a), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreateVi(node.nic, nullptr, nullptr, nullptr, &a), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreateVi(node.nic, &right, nullptr, nullptr, nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreateVi(node.nic, &right, node.nic, nullptr, &a), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipCreateVi(node.nic, &right, nullptr, this, &a), VIP_INVALID_PARAMETER);
}

TEST_F(VirtualInterface, WithWorkPendingCannotBeDestroyed) {
  a = node.vi();
  post_recv(a, node.descriptor(0));
  EXPECT_EQ(VipDestroyVi(a), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipDisconnect(a), VIP_SUCCESS);        // also flushes the descriptors of an idle VI
  EXPECT_EQ(VipDestroyVi(a), VIP_ERROR_RESOURCE);  // the flushed descriptor is still in the queue
  VIP_DESCRIPTOR* done = nullptr;
  EXPECT_EQ(VipRecvDone(a, &done), VIP_DESCRIPTOR_ERROR);
  EXPECT_EQ(VipDestroyVi(a), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyVi(a), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDestroyVi(nullptr), VIP_INVALID_PARAMETER);
}

TEST_F(VirtualInterface, WhileItIsConnectedCannotBeDestroyedNorChanged) {
  connect_pair();
  VIP_VI_ATTRIBUTES attributes = node.attributes();
  EXPECT_EQ(state_of(a), VIP_STATE_CONNECTED);
  EXPECT_EQ(VipDestroyVi(a), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipSetViAttributes(a, &attributes), VIP_INVALID_STATE);
  EXPECT_EQ(VipDisconnect(a), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyVi(a), VIP_SUCCESS);
}

TEST_F(VirtualInterface, ChangesWhileItIsIdleAndKeepsItsReceives) {
  a = node.vi();
  b = node.vi();
  VIP_DESCRIPTOR* recv = node.descriptor(0);
  post_recv(b, recv);
  VIP_VI_ATTRIBUTES attributes = node.attributes(VIP_SERVICE_UNRELIABLE);
  EXPECT_EQ(VipSetViAttributes(a, &attributes), VIP_SUCCESS);
  EXPECT_EQ(VipSetViAttributes(b, &attributes), VIP_SUCCESS);
  connect(node, a, node, b);
  VIP_DESCRIPTOR* send = node.descriptor(1);
  post_send(a, send);
  EXPECT_EQ(received(b, recv), success(VIP_STATUS_OP_RECEIVE));
  VIP_VI_ATTRIBUTES wrong = node.attributes();
  wrong.ReliabilityLevel = 9;
  EXPECT_EQ(VipSetViAttributes(a, nullptr), VIP_INVALID_PARAMETER);
  EXPECT_EQ(VipDisconnect(a), VIP_SUCCESS);
  EXPECT_EQ(VipSetViAttributes(a, &wrong), VIP_INVALID_RELIABILITY_LEVEL);
}

TEST_F(VirtualInterface, RdmaThatItForbidsFails) {
  VIP_VI_ATTRIBUTES attributes = node.attributes();
  attributes.EnableRdmaRead = VIP_FALSE;
  a = node.vi();
  ASSERT_EQ(VipCreateVi(node.nic, &attributes, nullptr, nullptr, &b), VIP_SUCCESS);
  Errors errors(node.nic);
  connect(node, a, node, b);
  VIP_DESCRIPTOR* read = node.rdma(VIP_CONTROL_OP_RDMAREAD, 1, node, 2);
  post_send(a, read);
  EXPECT_EQ(sent(a, read), failure(VIP_STATUS_OP_RDMA_READ | VIP_STATUS_RDMA_PROT_ERROR));
  EXPECT_EQ(errors.wait_for(VIP_ERROR_RDMAR_PROT).ViHandle, b);
}

}  // namespace
}  // namespace rocemu::vipl_test
