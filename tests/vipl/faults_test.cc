// Tests faults of the network and of the device in a VIPL program. The program has its own NIC in
// virtual time, so that retries take no real time.
#include <rocemu/testing.h>

#include "tests/vipl/vipl_fixture.h"

namespace rocemu::vipl_test {
namespace {

testing::Fabric* fabric = nullptr;

class Faults : public PairTest {
 protected:
  void TearDown() override { fabric->clear_rules(); }
};

TEST_F(Faults, ALostFrameIsSentAgainAndNothingIsSeenOfIt) {
  connect_pair();
  fabric->add_rule("{on: frame, opcode: SEND, nth: 1, do: drop}");
  Errors errors(node.nic);
  VIP_DESCRIPTOR* recv = node.descriptor(0);
  VIP_DESCRIPTOR* send = node.descriptor(1);
  post_recv(b, recv);
  post_send(a, send);
  EXPECT_EQ(sent(a, send), success(VIP_STATUS_OP_SEND));
  EXPECT_EQ(received(b, recv), success(VIP_STATUS_OP_RECEIVE));
  EXPECT_EQ(fabric->rules()[0].fired, 1u);
  EXPECT_EQ(errors.count(), 0u);
}

TEST_F(Faults, ALostFrameIsALostMessageOfAnUnreliableVi) {
  connect_pair(VIP_SERVICE_UNRELIABLE);
  fabric->add_rule("{on: frame, opcode: SEND, nth: 1, do: drop}");
  VIP_DESCRIPTOR* recv = node.descriptor(0);
  post_recv(b, recv);
  for (size_t i = 1; i < 3; ++i) {
    VIP_DESCRIPTOR* send = node.descriptor(i, static_cast<VIP_UINT32>(i));
    post_send(a, send);
    EXPECT_EQ(sent(a, send), success(VIP_STATUS_OP_SEND));
  }
  EXPECT_EQ(received(b, recv), success(VIP_STATUS_OP_RECEIVE));
  EXPECT_EQ(recv->CS.Length, 2u);  // the second message
}

TEST_F(Faults, ANetworkThatIsGoneIsATransportErrorAndALostConnection) {
  connect_pair();
  fabric->add_rule("{name: gone, on: frame, opcode: [REQUEST, RESPONSE], do: drop}");
  Errors errors(node.nic);
  post_recv(a, node.descriptor(5));
  VIP_DESCRIPTOR* send = node.descriptor(1);
  VIP_DESCRIPTOR* behind = node.descriptor(2);
  post_send(a, send);
  post_send(a, behind);
  EXPECT_EQ(sent(a, send), failure(VIP_STATUS_OP_SEND | VIP_STATUS_TRANSPORT_ERROR));
  EXPECT_EQ(sent(a, behind), failure(VIP_STATUS_OP_SEND | VIP_STATUS_DESC_FLUSHED_ERROR));
  EXPECT_EQ(state_of(a), VIP_STATE_ERROR);
  const VIP_ERROR_DESCRIPTOR error = errors.wait_for(VIP_ERROR_CONN_LOST);
  EXPECT_EQ(error.DescriptorPtr, send);
  EXPECT_EQ(VipDisconnect(a), VIP_SUCCESS);
}

TEST_F(Faults, EachCompletionStatusIsAStatusBit) {
  const std::pair<const char*, VIP_UINT32> table[] = {
      {"LOC_LEN_ERR", VIP_STATUS_LENGTH_ERROR},
      {"LOC_QP_OP_ERR", VIP_STATUS_FORMAT_ERROR},
      {"LOC_PROT_ERR", VIP_STATUS_PROTECTION_ERROR},
      {"BAD_RESP_ERR", VIP_STATUS_TRANSPORT_ERROR},
      {"REM_INV_REQ_ERR", VIP_STATUS_REMOTE_DESC_ERROR},
      {"REM_ACCESS_ERR", VIP_STATUS_RDMA_PROT_ERROR},
      {"REM_OP_ERR", VIP_STATUS_REMOTE_DESC_ERROR},
      {"RETRY_EXC_ERR", VIP_STATUS_TRANSPORT_ERROR},
      {"RNR_RETRY_EXC_ERR", VIP_STATUS_REMOTE_DESC_ERROR},
      {"FATAL_ERR", VIP_STATUS_TRANSPORT_ERROR},
      {"GENERAL_ERR", VIP_STATUS_TRANSPORT_ERROR},
  };
  for (const auto& [status, bit] : table) {
    connect_pair();
    post_recv(b, node.descriptor(0));
    fabric->add_rule(std::string("{on: completion, opcode: SEND, nth: 1, do: {status: ") + status +
                     "}}");
    VIP_DESCRIPTOR* send = node.descriptor(1);
    post_send(a, send);
    EXPECT_EQ(sent(a, send), failure(VIP_STATUS_OP_SEND | bit)) << status;
    EXPECT_EQ(state_of(a), VIP_STATE_ERROR) << status;
    fabric->clear_rules();
  }
}

TEST_F(Faults, EventsOfTheDeviceAreErrorsOfTheNic) {
  connect_pair();
  Errors errors(node.nic);
  fabric->add_rule("{on: now, do: {raise: QP_FATAL}}");
  const VIP_ERROR_DESCRIPTOR error = errors.wait_for(VIP_ERROR_CATASTROPHIC);
  EXPECT_EQ(error.ResourceCode, VIP_RESOURCE_VI);
  errors.wait_for(VIP_ERROR_CONN_LOST);
}

TEST_F(Faults, ACompletionQueueThatOverrunsIsACatastropheOfIt) {
  VIP_CQ_HANDLE cq = node.cq();
  a = node.vi(VIP_SERVICE_RELIABLE_DELIVERY, cq, nullptr);
  b = node.vi();
  connect(node, a, node, b);
  Errors errors(node.nic);
  post_recv(b, node.descriptor(0));
  fabric->add_rule("{on: completion, queue: send, do: overrun}");
  post_send(a, node.descriptor(1));
  EXPECT_EQ(errors.wait_for(VIP_ERROR_CATASTROPHIC, VIP_RESOURCE_CQ).CQHandle, cq);
  EXPECT_EQ(errors.wait_for(VIP_ERROR_CATASTROPHIC, VIP_RESOURCE_VI).ViHandle, a);
  EXPECT_TRUE(eventually([&] { return state_of(a) == VIP_STATE_ERROR; }));
}

TEST_F(Faults, ADeviceThatFailsFlushesEverything) {
  connect_pair();
  Errors errors(node.nic);
  VIP_DESCRIPTOR* recv = node.descriptor(0);
  post_recv(b, recv);
  fabric->add_rule("{on: now, do: {raise: DEVICE_FATAL}}");
  EXPECT_EQ(received(b, recv), failure(VIP_STATUS_OP_RECEIVE | VIP_STATUS_DESC_FLUSHED_ERROR));
  EXPECT_EQ(errors.wait_for(VIP_ERROR_CATASTROPHIC).ResourceCode, VIP_RESOURCE_NIC);
}

TEST_F(Faults, MemoryThatTheNicHasNotIsALackOfResources) {
  fabric->add_rule("{on: verb, verb: reg_mr, count: 1, do: {errno: ENOMEM}}");
  fabric->add_rule("{on: verb, verb: create_qp, count: 1, do: {errno: ENOMEM}}");
  fabric->add_rule("{on: verb, verb: create_cq, count: 1, do: {errno: ENOMEM}}");
  VIP_MEM_ATTRIBUTES rights{node.ptag, VIP_FALSE, VIP_FALSE};
  VIP_MEM_HANDLE handle = 0;
  EXPECT_EQ(VipRegisterMem(node.nic, node.data(0), 64, &rights, &handle), VIP_ERROR_RESOURCE);
  VIP_CQ_HANDLE cq = nullptr;
  EXPECT_EQ(VipCreateCQ(node.nic, 10, &cq), VIP_ERROR_RESOURCE);
  VIP_VI_ATTRIBUTES attributes = node.attributes();
  EXPECT_EQ(VipCreateVi(node.nic, &attributes, nullptr, nullptr, &a), VIP_ERROR_RESOURCE);
  EXPECT_EQ(VipCreateVi(node.nic, &attributes, nullptr, nullptr, &a), VIP_SUCCESS);
}

// The VI gets a QP as soon as the NIC has one again.
TEST_F(Faults, AViForWhichTheNicHasNoQpFailsUntilThereIsOne) {
  const char* const kNoQps = "{on: verb, verb: create_qp, do: {errno: ENOMEM}}";
  connect_pair();
  fabric->add_rule(kNoQps);
  EXPECT_EQ(VipDisconnect(a), VIP_ERROR_RESOURCE);
  EXPECT_EQ(state_of(a), VIP_STATE_IDLE);
  EXPECT_EQ(VipPostRecv(a, node.descriptor(0), node.memory), VIP_ERROR_RESOURCE);
  VIP_VI_ATTRIBUTES closed = node.attributes();
  closed.EnableRdmaWrite = VIP_FALSE;
  EXPECT_EQ(VipSetViAttributes(a, &closed), VIP_ERROR_RESOURCE);
  Address local = node.address("a"), remote = node.address("b");
  VIP_VI_ATTRIBUTES theirs{};
  EXPECT_EQ(VipConnectRequest(a, local.get(), remote.get(), kPatienceMs, &theirs),
            VIP_ERROR_RESOURCE);
  EXPECT_EQ(state_of(a), VIP_STATE_IDLE);
  EXPECT_TRUE(eventually([&] { return state_of(b) == VIP_STATE_ERROR; }));
  fabric->clear_rules();

  EXPECT_EQ(VipDisconnect(b), VIP_SUCCESS);
  post_recv(a, node.descriptor(0));
  connect(node, a, node, b);
  VIP_DESCRIPTOR* send = node.descriptor(1);
  post_send(b, send);
  EXPECT_EQ(sent(b, send), success(VIP_STATUS_OP_SEND));
  EXPECT_EQ(received(a, node.descriptor(0)), success(VIP_STATUS_OP_RECEIVE));
}

TEST_F(Faults, AttributesThatTheNicHasNoQpForAreNotTaken) {
  VIP_VI_HANDLE vi = node.vi();
  VIP_VI_ATTRIBUTES unreliable = node.attributes(VIP_SERVICE_UNRELIABLE);
  fabric->add_rule("{on: verb, verb: create_qp, count: 1, do: {errno: ENOMEM}}");
  EXPECT_EQ(VipSetViAttributes(vi, &unreliable), VIP_ERROR_RESOURCE);
  VIP_VI_STATE state = VIP_STATE_ERROR;
  VIP_VI_ATTRIBUTES attributes{};
  VIP_BOOLEAN send_empty = VIP_FALSE, recv_empty = VIP_FALSE;
  EXPECT_EQ(VipQueryVi(vi, &state, &attributes, &send_empty, &recv_empty), VIP_SUCCESS);
  EXPECT_EQ(attributes.ReliabilityLevel, VIP_SERVICE_RELIABLE_DELIVERY);
  EXPECT_EQ(VipSetViAttributes(vi, &unreliable), VIP_SUCCESS);
  EXPECT_EQ(VipDestroyVi(vi), VIP_SUCCESS);
}

TEST_F(Faults, ALostMessageOfTheConnectionsSetupIsSentAgain) {
  for (const char* message : {"REQ", "REP", "RTU"}) {
    fabric->add_rule(std::string("{on: cm, mad: ") + message + ", nth: 1, do: drop}");
    connect_pair();
    EXPECT_EQ(state_of(a), VIP_STATE_CONNECTED);
    EXPECT_EQ(state_of(b), VIP_STATE_CONNECTED);
    EXPECT_EQ(VipDisconnect(a), VIP_SUCCESS);
    fabric->clear_rules();
  }
}

}  // namespace
}  // namespace rocemu::vipl_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  rocemu::testing::Fabric nic({.clock = rocemu::testing::ClockKind::kLockstep});
  rocemu::vipl_test::fabric = &nic;
  return RUN_ALL_TESTS();
}
