// Tests ibv_attach_mcast(3) and ibv_detach_mcast(3), sentence by sentence.
#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

/// Returns the GID of 239.1.2.N, as RoCE v2 over IPv4 writes it.
ibv_gid group(uint8_t n) {
  ibv_gid gid{};
  const uint8_t mapped[] = {0xff, 0xff, 239, 1, 2, n};
  std::memcpy(gid.raw + 10, mapped, sizeof(mapped));
  return gid;
}

class Multicast : public TransportTest {
 protected:
  void SetUp() override {
    TransportTest::SetUp();
    sender = make_qp({.type = IBV_QPT_UD});
    ASSERT_NO_FATAL_FAILURE(bring_up(sender.get()));
    for (size_t i = 0; i < 2; ++i) {
      member_cqs[i] = create_cq();
      members[i] = make_qp({.type = IBV_QPT_UD, .cq = member_cqs[i].get()});
      ASSERT_NO_FATAL_FAILURE(bring_up(members[i].get()));
    }
    ibv_ah_attr attr = address_of_own();
    attr.grh.dgid = gid;
    ah.reset(ibv_create_ah(pd.get(), &attr));
    ASSERT_NE(ah, nullptr) << std::strerror(errno);
  }

  void send_to_group() {
    ibv_send_wr wr = request(IBV_WR_SEND, 1);
    wr.wr.ud = {.ah = ah.get(), .remote_qpn = 0xffffff, .remote_qkey = kQkey};
    ASSERT_EQ(post(sender.get(), wr), 0);
    ASSERT_EQ(next_status(), IBV_WC_SUCCESS);
    settle();
  }

  int arrived(size_t member) {
    ibv_wc wc[8];
    return ibv_poll_cq(member_cqs[member].get(), 8, wc);
  }

  const ibv_gid gid = group(3);
  QpPtr sender;
  CqPtr member_cqs[2];
  QpPtr members[2];
  AhPtr ah;
};

// "attaches the QP qp to the multicast group having MGID gid": each attached QP gets a copy, and no
// other QP does.
TEST_F(Multicast, EveryAttachedQpGetsACopy) {
  for (size_t i = 0; i < 2; ++i) {
    for (uint64_t wr = 0; wr < 4; ++wr) ASSERT_EQ(post_recv(members[i].get(), wr, 1 + i), 0);
  }
  settle();
  ASSERT_NO_FATAL_FAILURE(send_to_group());
  EXPECT_EQ(arrived(0), 0);
  ASSERT_EQ(ibv_attach_mcast(members[0].get(), &gid, 0), 0);
  ASSERT_NO_FATAL_FAILURE(send_to_group());
  EXPECT_EQ(arrived(0), 1);
  EXPECT_EQ(arrived(1), 0);
  ASSERT_EQ(ibv_attach_mcast(members[1].get(), &gid, 0), 0);
  ASSERT_NO_FATAL_FAILURE(send_to_group());
  EXPECT_EQ(arrived(0), 1);
  EXPECT_EQ(arrived(1), 1);
  // "detaches the QP"
  ASSERT_EQ(ibv_detach_mcast(members[0].get(), &gid, 0), 0);
  ASSERT_NO_FATAL_FAILURE(send_to_group());
  EXPECT_EQ(arrived(0), 0);
  EXPECT_EQ(arrived(1), 1);
  ASSERT_EQ(ibv_detach_mcast(members[1].get(), &gid, 0), 0);
}

// "If a QP is attached to the same multicast group multiple times, the QP will still receive a
// single copy of a multicast message."
TEST_F(Multicast, AttachedTwiceItStillGetsOneCopy) {
  for (uint64_t wr = 0; wr < 2; ++wr) ASSERT_EQ(post_recv(members[0].get(), wr), 0);
  ASSERT_EQ(ibv_attach_mcast(members[0].get(), &gid, 0), 0);
  ASSERT_EQ(ibv_attach_mcast(members[0].get(), &gid, 0), 0);
  ASSERT_NO_FATAL_FAILURE(send_to_group());
  EXPECT_EQ(arrived(0), 1);
  while (ibv_detach_mcast(members[0].get(), &gid, 0) == 0) {
  }
}

// "Only QPs of Transport Service Type IBV_QPT_UD may be attached to multicast groups."
TEST_F(Multicast, IsForUdQpsOnly) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    const QpPtr qp = make_qp({.type = type});
    EXPECT_EQ(ibv_attach_mcast(qp.get(), &gid, 0), EINVAL);
    EXPECT_EQ(ibv_detach_mcast(qp.get(), &gid, 0), EINVAL);
  }
}

// "returns ... the value of errno on failure": for an address that is no group, and for a group to
// which the QP is not attached.
TEST_F(Multicast, FailsForAnAddressThatIsNoGroup) {
  EXPECT_EQ(ibv_attach_mcast(members[0].get(), &own_gid, 0), EINVAL);
  EXPECT_EQ(ibv_detach_mcast(members[0].get(), &gid, 0), EINVAL);
  const ibv_gid other = group(4);
  ASSERT_EQ(ibv_attach_mcast(members[0].get(), &gid, 0), 0);
  EXPECT_EQ(ibv_detach_mcast(members[0].get(), &other, 0), EINVAL);
  ASSERT_EQ(ibv_detach_mcast(members[0].get(), &gid, 0), 0);
}

// ibv_create_qp(3): "ibv_destroy_qp() fails if the QP is attached to a multicast group."
TEST_F(Multicast, AnAttachedQpIsNotDestroyed) {
  ASSERT_EQ(ibv_attach_mcast(members[0].get(), &gid, 0), 0);
  EXPECT_EQ(ibv_destroy_qp(members[0].get()), EBUSY);
  ASSERT_EQ(ibv_detach_mcast(members[0].get(), &gid, 0), 0);
}

}  // namespace
}  // namespace rocemu::system_test
