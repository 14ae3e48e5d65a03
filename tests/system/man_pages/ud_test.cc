// Tests the unreliable datagram: ibv_create_ah(3), ibv_create_ah_from_wc(3), and the sentences of
// ibv_post_recv(3) and ibv_poll_cq(3) about it.
#include <arpa/inet.h>

#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

class UdTest : public TransportTest {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    peer_cq = create_cq();
    qp = make_qp({.type = IBV_QPT_UD});
    peer = make_qp({.type = IBV_QPT_UD, .cq = peer_cq.get()});
    for (ibv_qp* one : {qp.get(), peer.get()}) ASSERT_NO_FATAL_FAILURE(bring_up(one));
    ah = make_ah();
    ASSERT_NE(ah, nullptr);
  }

  ibv_send_wr datagram(ibv_wr_opcode opcode, uint32_t length = 16, uint32_t qkey = kQkey) {
    ibv_send_wr wr = request(opcode, 1, 0, length);
    wr.wr.ud = {.ah = ah.get(), .remote_qpn = peer->qp_num, .remote_qkey = qkey};
    return wr;
  }

  ibv_grh& grh_in(size_t index) { return *reinterpret_cast<ibv_grh*>(slot(index)); }

  uint32_t mtu() {
    ibv_port_attr port{};
    EXPECT_EQ(ibv_query_port(context.get(), 1, &port), 0);
    return 128u << port.active_mtu;
  }

  CqPtr peer_cq;
  QpPtr qp, peer;
  AhPtr ah;
};

// ibv_post_recv(3): "the actual data of the incoming message will start at an offset of 40 bytes".
// ibv_poll_cq(3): "src_qp: Source QP number (remote QP number)", "IBV_WC_GRH: GRH is present (valid
// only for UD QPs)".
TEST_F(UdTest, AMessageTellsWhereItCameFrom) {
  ASSERT_EQ(post_recv(peer.get(), 7), 0);
  std::strcpy(reinterpret_cast<char*>(slot(0)), "datagram");
  ibv_send_wr wr = datagram(IBV_WR_SEND_WITH_IMM);
  wr.imm_data = htonl(0x1234);
  ASSERT_EQ(post(qp.get(), wr), 0);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  const ibv_wc wc = poll_for(peer_cq.get(), 1).at(0);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(wc.byte_len, kGrhSize + 16);
  EXPECT_EQ(wc.src_qp, qp->qp_num);
  EXPECT_EQ(wc.qp_num, peer->qp_num);
  EXPECT_EQ(wc.wc_flags & (IBV_WC_GRH | IBV_WC_WITH_IMM),
            static_cast<unsigned>(IBV_WC_GRH | IBV_WC_WITH_IMM));
  EXPECT_EQ(ntohl(wc.imm_data), 0x1234u);
  EXPECT_STREQ(reinterpret_cast<char*>(slot(1) + kGrhSize), "datagram");
}

// ibv_create_qp(3): a UD QP may be "associated with an SRQ". ibv_post_srq_recv(3): "If a WR is
// being posted to a UD QP, the Global Routing Header (GRH) of the incoming message will be placed
// in the first 40 bytes of the buffer(s) in the scatter list."
TEST_F(UdTest, ReceivesOfAnSrqBeginWithTheRouteToo) {
  ibv_srq_init_attr init{};
  init.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  SrqPtr srq(ibv_create_srq(pd.get(), &init));
  ASSERT_NE(srq, nullptr);
  peer = make_qp({.type = IBV_QPT_UD, .cq = peer_cq.get(), .srq = srq.get()});
  ASSERT_NO_FATAL_FAILURE(bring_up(peer.get()));
  ASSERT_EQ(post_srq(srq.get(), 7), 0);
  std::strcpy(reinterpret_cast<char*>(slot(0)), "datagram");
  ASSERT_EQ(post(qp.get(), datagram(IBV_WR_SEND)), 0);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  const ibv_wc wc = poll_for(peer_cq.get(), 1).at(0);
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(wc.byte_len, kGrhSize + 16);
  EXPECT_STREQ(reinterpret_cast<char*>(slot(1) + kGrhSize), "datagram");
  peer.reset();
}

// ibv_create_ah_from_wc(3): "creates an AH associated with the protection domain pd using the port
// number port_num, using attributes from the work completion wc and the ... GRH structure grh":
// messages to this AH go to the sender of the received message.
TEST_F(UdTest, AnAddressHandleFromACompletionLeadsBack) {
  ASSERT_EQ(post_recv(peer.get(), 7), 0);
  ASSERT_EQ(post(qp.get(), datagram(IBV_WR_SEND)), 0);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  ibv_wc wc = poll_for(peer_cq.get(), 1).at(0);
  ibv_ah_attr attr{};
  ASSERT_EQ(ibv_init_ah_from_wc(context.get(), 1, &wc, &grh_in(1), &attr), 0);
  EXPECT_EQ(attr.is_global, 1);
  EXPECT_EQ(attr.port_num, 1);
  EXPECT_EQ(std::memcmp(&attr.grh.dgid, &own_gid, sizeof(own_gid)), 0);
  EXPECT_EQ(attr.grh.sgid_index, 0);
  AhPtr back(ibv_create_ah_from_wc(pd.get(), &wc, &grh_in(1), 1));
  ASSERT_NE(back, nullptr) << std::strerror(errno);
  EXPECT_EQ(back->pd, pd.get());
  ASSERT_EQ(post_recv(qp.get(), 8, 2), 0);
  ibv_send_wr wr = request(IBV_WR_SEND, 2);
  wr.wr.ud = {.ah = back.get(), .remote_qpn = wc.src_qp, .remote_qkey = kQkey};
  ASSERT_EQ(post(peer.get(), wr), 0);
  EXPECT_EQ(poll_for(cq.get(), 1).at(0).wr_id, 8u);
  EXPECT_EQ(next_status(peer_cq.get()), IBV_WC_SUCCESS);
}

// "returns ... NULL if the request fails". The port has IBV_QPF_GRH_REQUIRED, but the default
// policy of a device accepts an AH without GRH inside the fabric.
TEST_F(UdTest, AnAddressHandleNeedsAPortAGidAndARoute) {
  ibv_ah_attr attr = address_of_own();
  attr.port_num = 2;
  errno = 0;
  EXPECT_EQ(ibv_create_ah(pd.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
  attr = address_of_own();
  attr.grh.sgid_index = 15;
  EXPECT_EQ(ibv_create_ah(pd.get(), &attr), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

// IBTA vol 1, 9.6.1.4.1: a packet with another Q_Key is dropped without a report.
TEST_F(UdTest, AnotherQkeyIsDropped) {
  ASSERT_EQ(post_recv(peer.get(), 7), 0);
  ASSERT_EQ(post(qp.get(), datagram(IBV_WR_SEND, 16, kQkey + 1)), 0);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  ASSERT_EQ(post(qp.get(), datagram(IBV_WR_SEND, 8)), 0);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  EXPECT_EQ(poll_for(peer_cq.get(), 1).at(0).byte_len, kGrhSize + 8);
}

// A datagram for which no receive is posted is dropped; the sender does not learn of it.
TEST_F(UdTest, WithoutAReceiveAMessageIsDropped) {
  ASSERT_EQ(post(qp.get(), datagram(IBV_WR_SEND, 16)), 0);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  settle();
  ASSERT_EQ(post_recv(peer.get(), 7), 0);
  settle();
  ASSERT_EQ(post(qp.get(), datagram(IBV_WR_SEND, 8)), 0);
  EXPECT_EQ(poll_for(peer_cq.get(), 1).at(0).byte_len, kGrhSize + 8);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
}

// IBTA vol 1, 9.9.3, class D: a datagram that, with the 40 bytes before it, is too long for the
// receive is dropped, too. The receive stays posted, and the QP continues.
TEST_F(UdTest, AMessageLongerThanTheReceiveIsDropped) {
  ASSERT_EQ(post_recv(peer.get(), 7, 1, kGrhSize + 8), 0);
  ASSERT_EQ(post(qp.get(), datagram(IBV_WR_SEND, 9)), 0);
  ASSERT_EQ(post(qp.get(), datagram(IBV_WR_SEND, 8)), 0);
  EXPECT_EQ(poll_for(cq.get(), 2).at(1).status, IBV_WC_SUCCESS);
  const ibv_wc wc = poll_for(peer_cq.get(), 1).at(0);
  EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(wc.wr_id, 7u);
  EXPECT_EQ(wc.byte_len, kGrhSize + 8);
}

// IBTA vol 1, 9.8.3: "a message is one packet": a message may not be longer than the path's MTU.
TEST_F(UdTest, AMessageIsOnePacket) {
  ASSERT_EQ(post_recv(peer.get(), 7), 0);
  ASSERT_LE(mtu() + kGrhSize, kSlot);
  ASSERT_EQ(post(qp.get(), datagram(IBV_WR_SEND, mtu())), 0);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  EXPECT_EQ(poll_for(peer_cq.get(), 1).at(0).byte_len, kGrhSize + mtu());
  ASSERT_EQ(post(qp.get(), datagram(IBV_WR_SEND, mtu() + 1)), 0);
  EXPECT_EQ(next_status(), IBV_WC_LOC_LEN_ERR);
}

// IBTA vol 1, 10.3.1.6: an error of the send queue of a UD QP changes its state to SQE, from which
// ibv_modify_qp(3) brings it back to RTS; in the meantime it receives.
TEST_F(UdTest, ASendErrorStopsTheSendQueueOnly) {
  ASSERT_EQ(post(qp.get(), datagram(IBV_WR_SEND, mtu() + 1)), 0);
  EXPECT_EQ(next_status(), IBV_WC_LOC_LEN_ERR);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init), 0);
  EXPECT_EQ(attr.qp_state, IBV_QPS_SQE);
  EXPECT_EQ(qp->state, IBV_QPS_SQE);
  ASSERT_EQ(post(qp.get(), datagram(IBV_WR_SEND)), 0);
  EXPECT_EQ(next_status(), IBV_WC_WR_FLUSH_ERR);
  attr.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE), 0);
  ASSERT_EQ(post_recv(peer.get(), 7), 0);
  ASSERT_EQ(post(qp.get(), datagram(IBV_WR_SEND)), 0);
  EXPECT_EQ(next_status(), IBV_WC_SUCCESS);
  EXPECT_EQ(next_status(peer_cq.get()), IBV_WC_SUCCESS);
}

// ibv_query_qp(3): "qkey: Q_Key of the QP (valid only for UD QPs)".
TEST_F(UdTest, QueryTellsTheQkey) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  ASSERT_EQ(ibv_query_qp(qp.get(), &attr, IBV_QP_QKEY, &init), 0);
  EXPECT_EQ(attr.qkey, kQkey);
  EXPECT_EQ(init.qp_type, IBV_QPT_UD);
}

// ibv_modify_qp(3): "rate_limit: Rate limit in kbps for packet pacing": the device has no packet
// pacing.
TEST_F(UdTest, ThereIsNoPacketPacing) {
  ibv_qp_attr attr{};
  attr.rate_limit = 1000;
  EXPECT_EQ(ibv_modify_qp(qp.get(), &attr, IBV_QP_RATE_LIMIT), EINVAL);
  ibv_qp_rate_limit_attr limit{};
  EXPECT_EQ(ibv_modify_qp_rate_limit(qp.get(), &limit), EOPNOTSUPP);
}

// ibv_set_ece(3) and ibv_query_ece(3): "EOPNOTSUPP: libibverbs or provider driver doesn't support".
TEST_F(UdTest, ThereAreNoEnhancedConnections) {
  ibv_ece ece{.vendor_id = 1, .options = 0, .comp_mask = 0};
  EXPECT_EQ(ibv_set_ece(qp.get(), &ece), EOPNOTSUPP);
  EXPECT_EQ(ibv_query_ece(qp.get(), &ece), EOPNOTSUPP);
}

}  // namespace
}  // namespace rocemu::system_test
