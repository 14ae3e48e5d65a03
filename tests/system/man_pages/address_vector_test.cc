// Tests the address vectors of ibv_modify_qp(3) and ibv_create_ah(3), and the addresses that they
// may have. Linux resolves the neighbor, and returns ETIMEDOUT if the neighbor does not answer.
#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

ibv_gid mapped(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  ibv_gid gid{};
  const uint8_t bytes[] = {0xff, 0xff, a, b, c, d};
  std::memcpy(gid.raw + 10, bytes, sizeof bytes);
  return gid;
}

class AddressVector : public TransportTest {
 protected:
  int create_ah(const ibv_gid& gid) {
    ibv_ah_attr attr = address_of_own();
    attr.grh.dgid = gid;
    errno = 0;
    const AhPtr ah(ibv_create_ah(pd.get(), &attr));
    return ah ? 0 : errno;
  }
  int to_rtr_with(const ibv_gid& gid) {
    QpPtr qp = make_qp({});
    to_init(qp.get());
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = qp->qp_num;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 1;
    attr.ah_attr = address_of_own();
    attr.ah_attr.grh.dgid = gid;
    const int error =
        ibv_modify_qp(qp.get(), &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    EXPECT_EQ(qp->state, error == 0 ? IBV_QPS_RTR : IBV_QPS_INIT);
    return error;
  }
};

TEST_F(AddressVector, IsAcceptedForEachDeviceAndForOtherSubnets) {
  const ContextPtr other = open_device(1);
  ibv_gid gid{};
  ASSERT_EQ(ibv_query_gid(other.get(), 1, 0, &gid), 0);
  for (const ibv_gid& one : {gid, own_gid, mapped(192, 0, 2, 1)}) {
    EXPECT_EQ(create_ah(one), 0);
    EXPECT_EQ(to_rtr_with(one), 0);
  }
}

TEST_F(AddressVector, ToAnAddressOnTheLinkThatNothingHasTimesOut) {
  ibv_gid nobody = own_gid;
  nobody.raw[15] = 0xfb;
  EXPECT_EQ(create_ah(nobody), ETIMEDOUT);
  EXPECT_EQ(to_rtr_with(nobody), ETIMEDOUT);
}

// rxe accepts an IPv6 group with an IPv4 source GID, and so do we: the group that perftest joins
// with -g is not an IPv4 group.
TEST_F(AddressVector, MayBeOfAnIpv6GroupFromAnIpv4Gid) {
  const ibv_gid group = {{0xff, 1, 0, 0, 0, 2, 201, 133}};
  ASSERT_EQ(own_gid.raw[10], 0xff) << "GID 0 is IPv4-mapped";
  EXPECT_EQ(create_ah(group), 0);
}

TEST_F(AddressVector, OfAnIpv6GroupReachesItsMembers) {
  const ibv_gid group = {{0xff, 1, 0, 0, 0, 2, 201, 133}};
  CqPtr member_cq = create_cq();
  QpPtr sender = make_qp({.type = IBV_QPT_UD});
  QpPtr member = make_qp({.type = IBV_QPT_UD, .cq = member_cq.get()});
  for (ibv_qp* qp : {sender.get(), member.get()}) ASSERT_NO_FATAL_FAILURE(bring_up(qp));
  ASSERT_EQ(ibv_attach_mcast(member.get(), &group, 0), 0);
  ASSERT_EQ(post_recv(member.get(), 5, 1), 0);
  ibv_ah_attr attr = address_of_own();
  attr.grh.dgid = group;
  const AhPtr ah(ibv_create_ah(pd.get(), &attr));
  ASSERT_NE(ah, nullptr);
  ibv_send_wr wr = request(IBV_WR_SEND, 1);
  wr.wr.ud = {.ah = ah.get(), .remote_qpn = 0xffffff, .remote_qkey = kQkey};
  ASSERT_EQ(post(sender.get(), wr), 0);
  ASSERT_EQ(next_status(), IBV_WC_SUCCESS);
  const auto arrived = poll_for(member_cq.get(), 1);
  ASSERT_EQ(arrived.size(), 1u);
  EXPECT_EQ(arrived[0].wr_id, 5u);
  // The global route header has an IPv6 GID of the device as its source, and the group as its
  // destination.
  EXPECT_EQ(std::memcmp(slot(1) + 24, group.raw, sizeof group.raw), 0);
  ibv_gid source{};
  std::memcpy(source.raw, slot(1) + 8, sizeof source.raw);
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(context.get(), 1, &port), 0);
  bool is_own = false;
  for (int i = 0; i < port.gid_tbl_len; ++i) {
    ibv_gid gid{};
    is_own |= ibv_query_gid(context.get(), 1, i, &gid) == 0 &&
              std::memcmp(gid.raw, source.raw, sizeof gid.raw) == 0;
  }
  EXPECT_TRUE(is_own);
  ASSERT_EQ(ibv_detach_mcast(member.get(), &group, 0), 0);
}

}  // namespace
}  // namespace rocemu::system_test
