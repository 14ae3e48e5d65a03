// Tests counts and lengths that are zero, negative or huge, in every verb that has a count or
// length.
#include <climits>

#include "tests/system/transport_fixture.h"

namespace rocemu::system_test {
namespace {

class Counts : public TransportTest {
 protected:
  QpPtr loop() {
    QpPtr qp = make_qp({});
    bring_up(qp.get(), qp->qp_num);
    return qp;
  }
  ibv_device_attr limits() {
    ibv_device_attr device{};
    EXPECT_EQ(ibv_query_device(context.get(), &device), 0);
    return device;
  }
};

TEST_F(Counts, OfSgesAreRefusedAtOnce) {
  const QpPtr qp = loop();
  for (const int count : {5, 33, 0x1000, INT_MAX, -1, INT_MIN}) {
    ibv_send_wr wr = request(IBV_WR_SEND, 1);
    wr.num_sge = count;
    EXPECT_EQ(post(qp.get(), wr), EINVAL) << count;
    ibv_recv_wr recv{};
    recv.sg_list = &entry;
    recv.num_sge = count;
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_recv(qp.get(), &recv, &bad), EINVAL) << count;
    EXPECT_EQ(bad, &recv);
  }
  ASSERT_EQ(post_recv(qp.get(), 1), 0);
  ASSERT_EQ(post_send(qp.get(), 2), 0);
  EXPECT_EQ(poll_for(cq.get(), 2).size(), 2u) << "the queues are as they were";
}

TEST_F(Counts, OfNoSgesAndNoBytesAreMessagesWithoutData) {
  const QpPtr qp = loop();
  ibv_send_wr wr = request(IBV_WR_SEND, 1, 0, 0);
  for (const int count : {0, 1}) {
    wr.num_sge = count;
    wr.sg_list = count == 0 ? nullptr : &entry;
    entry.addr = 0;  // a list of no bytes needs neither memory nor a key
    entry.lkey = 0;
    ibv_recv_wr recv{};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(qp.get(), &recv, &bad), 0);
    ASSERT_EQ(post(qp.get(), wr), 0);
    for (const ibv_wc& wc : poll_for(cq.get(), 2)) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      if (wc.opcode == IBV_WC_RECV) {
        EXPECT_EQ(wc.byte_len, 0u);
      }
    }
  }
}

TEST_F(Counts, OfCompletionsToPollMayBeZeroOrLess) {
  const QpPtr qp = loop();
  ASSERT_EQ(post_recv(qp.get(), 1), 0);
  ASSERT_EQ(post_send(qp.get(), 2), 0);
  ibv_wc wc{};
  for (const int count : {0, -1, INT_MIN}) EXPECT_EQ(ibv_poll_cq(cq.get(), count, &wc), 0);
  EXPECT_EQ(poll_for(cq.get(), 2).size(), 2u) << "none of them is lost";
}

// An SGE's length has 32 bits, and the sum of the lengths may exceed the maximum of a message (2^31
// bytes).
TEST_F(Counts, OfBytesBeyondTheLargestMessageAreALocalLengthError) {
  for (const uint32_t length : {0x8000'0001u, ~0u, 0x7fff'ffffu}) {
    const QpPtr qp = loop();
    ibv_sge parts[2] = {sge(0, length), sge(0, 2)};
    ibv_send_wr wr = request(IBV_WR_SEND, 1);
    wr.sg_list = parts;
    wr.num_sge = length < 0x8000'0000u ? 2 : 1;
    ASSERT_EQ(post(qp.get(), wr), 0);
    EXPECT_EQ(next_status(), IBV_WC_LOC_LEN_ERR) << length;
  }
}

TEST_F(Counts, OfCqEntriesHaveTheDevicesLimit) {
  const int most = limits().max_cqe;
  for (const int count : {0, -1, INT_MIN, most + 1, INT_MAX}) {
    errno = 0;
    EXPECT_EQ(ibv_create_cq(context.get(), count, nullptr, nullptr, 0), nullptr) << count;
    EXPECT_EQ(errno, EINVAL) << count;
    EXPECT_EQ(ibv_resize_cq(cq.get(), count), EINVAL) << count;
  }
  EXPECT_NE(create_cq(most), nullptr);
  for (const int vector : {-1, context->num_comp_vectors, INT_MAX}) {
    EXPECT_EQ(ibv_create_cq(context.get(), 1, nullptr, nullptr, vector), nullptr) << vector;
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_F(Counts, OfBytesToRegisterEndWithTheAddressSpace) {
  EXPECT_NE(MrPtr(ibv_reg_mr(pd.get(), memory.data(), 0, 0)), nullptr) << "a region of no bytes";
  for (const size_t length : {SIZE_MAX, SIZE_MAX / 2, size_t{1} << 47}) {
    errno = 0;
    EXPECT_EQ(ibv_reg_mr(pd.get(), memory.data(), length, 0), nullptr) << length;
    EXPECT_TRUE(errno == EINVAL || errno == EFAULT) << length << ": " << std::strerror(errno);
  }
}

TEST_F(Counts, IndicesBehindTheEndOfATableAreRefused) {
  ibv_gid gid;
  ibv_port_attr port{};
  ASSERT_EQ(ibv_query_port(context.get(), 1, &port), 0);
  for (const int index : {-1, port.gid_tbl_len, INT_MAX}) {
    EXPECT_NE(ibv_query_gid(context.get(), 1, index, &gid), 0) << index;
  }
  __be16 pkey;
  for (const int index : {-1, static_cast<int>(port.pkey_tbl_len), INT_MAX}) {
    EXPECT_NE(ibv_query_pkey(context.get(), 1, index, &pkey), 0) << index;
  }
  for (const int number : {0, 2, 255}) {
    EXPECT_EQ(ibv_query_port(context.get(), static_cast<uint8_t>(number), &port), EINVAL);
  }
}

// Tests the fields of ibv_modify_qp(3), each just above its maximum.
TEST_F(Counts, OfAttributesAreRefusedJustAboveTheirLimits) {
  const QpPtr qp = make_qp({});
  ASSERT_NO_FATAL_FAILURE(bring_to_rtr(qp.get(), qp->qp_num));
  const ibv_device_attr device = limits();
  const auto to_rts = [&](auto change) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.max_rd_atomic = 1;
    change(attr);
    return ibv_modify_qp(qp.get(), &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  };
  EXPECT_EQ(to_rts([](ibv_qp_attr& attr) { attr.timeout = 32; }), EINVAL);
  EXPECT_EQ(to_rts([](ibv_qp_attr& attr) { attr.retry_cnt = 8; }), EINVAL);
  EXPECT_EQ(to_rts([](ibv_qp_attr& attr) { attr.rnr_retry = 8; }), EINVAL);
  const auto most = static_cast<uint8_t>(device.max_qp_init_rd_atom);
  ASSERT_LT(device.max_qp_init_rd_atom, 255);
  EXPECT_EQ(to_rts([&](ibv_qp_attr& attr) { attr.max_rd_atomic = uint8_t(most + 1); }), EINVAL);
  EXPECT_EQ(to_rts([&](ibv_qp_attr& attr) { attr.max_rd_atomic = most; }), 0);
}

}  // namespace
}  // namespace rocemu::system_test
