// Tests the unreliable connection: the operations that ibv_post_send(3)'s table lists for UC, and
// errors that are not reported.
#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

class UcTest : public TransportTest {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    peer_cq = create_cq();
    qp = make_qp({.type = IBV_QPT_UC});
    peer = make_qp({.type = IBV_QPT_UC, .cq = peer_cq.get()});
    ASSERT_NO_FATAL_FAILURE(bring_up_pair(qp.get(), peer.get()));
  }

  ibv_send_wr write(ibv_wr_opcode opcode, uint32_t length, uint32_t rkey) {
    ibv_send_wr wr = request(opcode, 1, 0, length);
    wr.wr.rdma = {reinterpret_cast<uint64_t>(slot(3)), rkey};
    return wr;
  }

  CqPtr peer_cq;
  QpPtr qp, peer;
};

TEST_F(UcTest, SendsAreDeliveredInManyPackets) {
  ASSERT_EQ(post_recv(peer.get(), 7), 0);
  std::memset(slot(0), 'u', 5000);
  ASSERT_EQ(post_send(qp.get(), 1, IBV_SEND_SIGNALED, 5000), 0);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  const ibv_wc wc = poll_for(peer_cq.get(), 1).at(0);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.opcode, IBV_WC_RECV);
  EXPECT_EQ(wc.byte_len, 5000u);
  EXPECT_EQ(std::memcmp(slot(0), slot(1), 5000), 0);
}

TEST_F(UcTest, WritesArriveWithAndWithoutImmediate) {
  std::memset(slot(0), 'w', 3000);
  ASSERT_EQ(post_recv(peer.get(), 7), 0);
  ASSERT_EQ(post(qp.get(), write(IBV_WR_RDMA_WRITE, 3000, remote_mr->rkey)), 0);
  ASSERT_EQ(post(qp.get(), write(IBV_WR_RDMA_WRITE_WITH_IMM, 0, remote_mr->rkey)), 0);
  EXPECT_EQ(poll_for(cq.get(), 2).size(), 2u);
  EXPECT_EQ(poll_for(peer_cq.get(), 1).at(0).opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(std::memcmp(slot(0), slot(3), 3000), 0);
}

// IBTA vol 1, 9.8.2: UC has no acknowledgements. The sender's completion means that the message was
// sent, even if it does not arrive.
TEST_F(UcTest, WithoutAReceiveAMessageIsDropped) {
  ASSERT_EQ(post_send(qp.get(), 1), 0);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  settle();
  ASSERT_EQ(post_recv(peer.get(), 7), 0);
  settle();
  ASSERT_EQ(post_send(qp.get(), 2, IBV_SEND_SIGNALED, 8), 0);
  EXPECT_EQ(poll_for(peer_cq.get(), 1).at(0).byte_len, 8u);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
}

// IBTA vol 1, 9.9.3, class D: the receive stays posted, and the QP continues.
TEST_F(UcTest, AMessageLongerThanTheReceiveIsDropped) {
  ASSERT_EQ(post_recv(peer.get(), 7, 1, 3000), 0);
  ASSERT_EQ(post_send(qp.get(), 1, IBV_SEND_SIGNALED, 5000), 0);
  ASSERT_EQ(post_send(qp.get(), 2, IBV_SEND_SIGNALED, 3000), 0);
  EXPECT_EQ(poll_for(cq.get(), 2).at(1).status, IBV_WC_SUCCESS);
  const ibv_wc wc = poll_for(peer_cq.get(), 1).at(0);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(wc.byte_len, 3000u);
}

TEST_F(UcTest, AWriteWithABadKeyIsDropped) {
  ASSERT_EQ(post(qp.get(), write(IBV_WR_RDMA_WRITE, 16, 0xbad)), 0);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  ASSERT_EQ(post_recv(peer.get(), 7), 0);
  settle();
  ASSERT_EQ(post_send(qp.get(), 2), 0);
  EXPECT_EQ(next_status(peer_cq.get()), IBV_WC_SUCCESS) << "the QP goes on";
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace rocemu::system_test
