// Tests ibv_wr_post(3): work requests are built in a send queue that the test reads.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/provider/fake_queues.h"
#include "verbs_provider/base/verbs.h"
#include "verbs_provider/objects/qp_ex.h"

namespace rocemu::provider {
namespace {

constexpr uint64_t kUdOps = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
constexpr uint64_t kUcOps = kUdOps | IBV_QP_EX_WITH_RDMA_WRITE |
                            IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV |
                            IBV_QP_EX_WITH_BIND_MW;
constexpr uint64_t kXrcOps = kUcOps | IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_RDMA_READ |
                             IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                             IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
constexpr uint64_t kRcOps = kXrcOps | IBV_QP_EX_WITH_ATOMIC_WRITE;
// IBV_QP_EX_WITH_FLUSH, which only later versions of verbs.h have
constexpr uint64_t kWithFlush = 1u << 11;

class Builder : public testing::Test {
 protected:
  explicit Builder(ibv_qp_type type = IBV_QPT_RC, uint64_t operations = kRcOps) : queues_(type) {
    install_work_request_builder(queues_.qp.get(), operations);
    qp_ = ibv_qp_to_qp_ex(&queues_.qp->verbs.qp);
    qp_->wr_id = 42;
    qp_->wr_flags = IBV_SEND_SIGNALED;
  }

  /// Checks that nothing was posted, and that the queue can be used as before.
  void expect_refused(int error) {
    EXPECT_EQ(ibv_wr_complete(qp_), error);
    EXPECT_EQ(queues_.doorbell_count(), 0u);
    EXPECT_EQ(queues_.qp->send.posted, 0u);
  }
  abi::SendWqe complete() {
    EXPECT_EQ(ibv_wr_complete(qp_), 0);
    return queues_.send_wqe(0);
  }

  FakeQueues queues_;
  ibv_qp_ex* qp_;
};

class UdBuilder : public Builder {
 protected:
  UdBuilder() : Builder(IBV_QPT_UD, kUdOps) { ah_.handle = 5; }
  ibv_ah ah_{};
};

class XrcBuilder : public Builder {
 protected:
  XrcBuilder() : Builder(IBV_QPT_XRC_SEND, kXrcOps) {}
};

class SendOnlyBuilder : public Builder {
 protected:
  SendOnlyBuilder() : Builder(IBV_QPT_RC, IBV_QP_EX_WITH_SEND) {}
};

// ibv_wr_post(3) has the table of operations and QP types.
TEST(BuilderOperations, AreThoseOfTheQpType) {
  EXPECT_TRUE(offers(IBV_QPT_RC, kRcOps));
  EXPECT_TRUE(offers(IBV_QPT_XRC_SEND, kXrcOps));
  EXPECT_TRUE(offers(IBV_QPT_UC, kUcOps));
  EXPECT_TRUE(offers(IBV_QPT_UD, kUdOps));
  EXPECT_TRUE(offers(IBV_QPT_RC, 0));
  for (uint64_t bit = 1; bit != 0; bit <<= 1) {
    const bool is_flush = bit == kWithFlush && layout.has_flush();
    EXPECT_EQ(offers(IBV_QPT_RC, bit), (kRcOps & bit) != 0 || is_flush) << bit;
    EXPECT_EQ(offers(IBV_QPT_XRC_SEND, bit), (kXrcOps & bit) != 0) << bit;
    EXPECT_EQ(offers(IBV_QPT_UC, bit), (kUcOps & bit) != 0) << bit;
    EXPECT_EQ(offers(IBV_QPT_UD, bit), (kUdOps & bit) != 0) << bit;
    EXPECT_FALSE(offers(IBV_QPT_XRC_RECV, bit)) << bit;
  }
  EXPECT_FALSE(offers(IBV_QPT_UD, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO));
}

TEST_F(Builder, WritesTheRequestItsFlagsAndItsSges) {
  ibv_sge sges[2] = {{0x1000, 10, 1}, {0x2000, 20, 2}};
  ibv_wr_start(qp_);
  ibv_wr_rdma_write_imm(qp_, 9, 0x3000, 0x01020304);
  ibv_wr_set_sge_list(qp_, 2, sges);
  const abi::SendWqe wqe = complete();
  EXPECT_EQ(wqe.wr_id, 42u);
  EXPECT_EQ(wqe.opcode, static_cast<uint32_t>(abi::WrOpcode::kRdmaWriteWithImm));
  EXPECT_EQ(wqe.flags, abi::kSendSignaled);
  EXPECT_EQ(wqe.imm_data, 0x01020304u);
  EXPECT_EQ(wqe.remote_address, 0x3000u);
  EXPECT_EQ(wqe.rkey, 9u);
  EXPECT_EQ(wqe.num_sge, 2u);
  EXPECT_EQ(memcmp(queues_.send_slot(0) + sizeof(wqe), sges, sizeof(sges)), 0);
  EXPECT_EQ(queues_.doorbell_count(), 1u);
}

TEST_F(Builder, PostsSeveralRequestsWithOneDoorbell) {
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  qp_->wr_id = 43;
  ibv_wr_local_inv(qp_, 0x77);
  qp_->wr_id = 44;
  ibv_wr_rdma_read(qp_, 1, 2);
  ibv_wr_set_sge(qp_, 3, 0x4000, 5);
  EXPECT_EQ(queues_.doorbell_count(), 0u) << "no work is executed until ibv_wr_complete()";
  complete();
  EXPECT_EQ(queues_.doorbell_count(), 1u);
  EXPECT_EQ(queues_.last_doorbell().value, 3u);
  EXPECT_EQ(queues_.send_wqe(1).wr_id, 43u);
  EXPECT_EQ(queues_.send_wqe(1).imm_data, 0x77u);
  EXPECT_EQ(queues_.send_wqe(2).num_sge, 1u);
}

// "ibv_wr_abort() will discard all work prepared since ibv_wr_start()."
TEST_F(Builder, DiscardsAllWorkOnAbort) {
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  ibv_wr_send(qp_);
  ibv_wr_abort(qp_);
  EXPECT_EQ(queues_.doorbell_count(), 0u);
  ibv_wr_start(qp_);
  expect_refused(0);
}

// ibv_wr_complete(): "the entire posting will be aborted"
TEST_F(Builder, PostsNothingIfOneRequestIsInvalid) {
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  ibv_wr_rdma_read(qp_, 1, 2);
  char data[4] = {};
  // inline data is "Valid only for SEND and RDMA_WRITE"
  ibv_wr_set_inline_data(qp_, data, sizeof(data));
  ibv_wr_send(qp_);
  expect_refused(EINVAL);
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  complete();
}

TEST_F(Builder, ReportsTheFirstError) {
  ibv_wr_start(qp_);
  for (uint32_t i = 0; i <= FakeQueues::kMaxWr; ++i) ibv_wr_send(qp_);
  ibv_wr_set_sge_list(qp_, FakeQueues::kMaxSge + 1, nullptr);
  expect_refused(ENOMEM);
}

TEST_F(Builder, CopiesListsOfInlineData) {
  char first[] = "work ", second[] = "request";
  const ibv_data_buf list[] = {{first, 5}, {nullptr, 0}, {second, 8}};
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  ibv_wr_set_inline_data_list(qp_, 3, list);
  memset(first, 0, sizeof(first));
  const abi::SendWqe wqe = complete();
  EXPECT_EQ(wqe.flags, abi::kSendSignaled | abi::kSendInline);
  EXPECT_EQ(wqe.inline_size, 13u);
  EXPECT_STREQ(reinterpret_cast<const char*>(queues_.send_slot(0) + sizeof(wqe)), "work request");
}

TEST_F(Builder, RefusesMoreDataThanTheQueueTakes) {
  char data[FakeQueues::kMaxInline + 1] = {};
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  ibv_wr_set_inline_data(qp_, data, sizeof(data));
  expect_refused(EINVAL);
  ibv_sge sges[FakeQueues::kMaxSge + 1] = {};
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  ibv_wr_set_sge_list(qp_, FakeQueues::kMaxSge + 1, sges);
  expect_refused(EINVAL);
}

TEST_F(Builder, WritesTheOperandsOfAtomics) {
  ibv_wr_start(qp_);
  ibv_wr_atomic_cmp_swp(qp_, 1, 2, 3, 4);
  ibv_wr_set_sge(qp_, 5, 6, 8);
  ibv_wr_atomic_fetch_add(qp_, 7, 8, 9);
  ibv_wr_set_sge(qp_, 5, 6, 8);
  const abi::SendWqe swap = complete();
  EXPECT_EQ(swap.rkey, 1u);
  EXPECT_EQ(swap.remote_address, 2u);
  EXPECT_EQ(swap.atomic.compare_add, 3u);
  EXPECT_EQ(swap.atomic.swap, 4u);
  EXPECT_EQ(queues_.send_wqe(1).atomic.compare_add, 9u);
}

TEST_F(Builder, TakesTheEightBytesOfAnAtomicWriteAtOnce) {
  uint64_t value = 0x0123456789abcdef;
  ibv_wr_start(qp_);
  ibv_wr_atomic_write(qp_, 1, 2, &value);
  value = 0;
  const abi::SendWqe wqe = complete();
  EXPECT_EQ(wqe.opcode, static_cast<uint32_t>(abi::WrOpcode::kAtomicWrite));
  EXPECT_EQ(wqe.inline_size, 8u);
  memcpy(&value, queues_.send_slot(0) + sizeof(wqe), sizeof(value));
  EXPECT_EQ(value, 0x0123456789abcdefu);
}

// This test does not call ibv_wr_flush(), which some versions of <infiniband/verbs.h> lack.
TEST_F(Builder, WritesTheRangeOfAFlush) {
  queues_.qp->builder_opcodes |= 1u << static_cast<uint32_t>(abi::WrOpcode::kFlush);
  ibv_wr_start(qp_);
  wr_flush(qp_, 1, 2, 3, 4, 0);
  const abi::SendWqe wqe = complete();
  EXPECT_EQ(wqe.opcode, static_cast<uint32_t>(abi::WrOpcode::kFlush));
  EXPECT_EQ(wqe.rkey, 1u);
  EXPECT_EQ(wqe.remote_address, 2u);
  EXPECT_EQ(wqe.flush.length, 3u);
  EXPECT_EQ(wqe.flush.type, 4u);
  EXPECT_EQ(wqe.num_sge, 0u);
  ibv_wr_start(qp_);
  wr_flush(qp_, 1, 2, size_t{1} << 32, 4, 0);
  EXPECT_EQ(ibv_wr_complete(qp_), EINVAL);
}

TEST_F(Builder, AsksForRoomForAnAtomicWrite) {
  ibv_qp_cap cap{};
  make_room_for(IBV_QP_EX_WITH_SEND, &cap);
  EXPECT_EQ(cap.max_inline_data, 0u);
  make_room_for(IBV_QP_EX_WITH_ATOMIC_WRITE, &cap);
  EXPECT_EQ(cap.max_inline_data, 8u);
  cap.max_inline_data = 64;
  make_room_for(IBV_QP_EX_WITH_ATOMIC_WRITE, &cap);
  EXPECT_EQ(cap.max_inline_data, 64u);
}

TEST_F(Builder, BindsWindowsOfType2Only) {
  ibv_mr mr{};
  mr.lkey = 3;
  ibv_mw window{};
  window.handle = 4;
  window.type = IBV_MW_TYPE_2;
  const ibv_mw_bind_info info{
      .mr = &mr, .addr = 0x1000, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_READ};
  ibv_wr_start(qp_);
  ibv_wr_bind_mw(qp_, &window, 0x55, &info);
  const abi::SendWqe wqe = complete();
  EXPECT_EQ(wqe.window, 4u);
  EXPECT_EQ(wqe.rkey, 0x55u);
  EXPECT_EQ(wqe.remote_address, 0x1000u);
  EXPECT_EQ(wqe.bind.length, 64u);
  EXPECT_EQ(wqe.bind.lkey, 3u);
  EXPECT_EQ(wqe.bind.access, static_cast<uint32_t>(IBV_ACCESS_REMOTE_READ));
  window.type = IBV_MW_TYPE_1;
  ibv_wr_start(qp_);
  ibv_wr_bind_mw(qp_, &window, 0x55, &info);
  EXPECT_EQ(ibv_wr_complete(qp_), EINVAL);
}

// ibv_wr_post(3): nothing is posted before ibv_wr_complete(), and nothing if that fails.
TEST_F(Builder, GivesWindowsTheirNewKeysWhenTheBindsArePosted) {
  ibv_mr mr{};
  ibv_mw one{}, two{};
  for (ibv_mw* window : {&one, &two}) {
    window->type = IBV_MW_TYPE_2;
    window->rkey = window == &one ? 0x100 : 0x200;
  }
  const ibv_mw_bind_info info{.mr = &mr, .addr = 0x1000, .length = 64, .mw_access_flags = 0};
  const auto bind_all = [&] {
    ibv_wr_start(qp_);
    ibv_wr_bind_mw(qp_, &one, 0xabcdef55, &info);
    ibv_wr_bind_mw(qp_, &two, 0x66, &info);
    ibv_wr_bind_mw(qp_, &one, 0x77, &info);
    EXPECT_EQ(one.rkey, 0x100u);
    EXPECT_EQ(two.rkey, 0x200u);
  };
  bind_all();
  ibv_wr_abort(qp_);
  EXPECT_EQ(one.rkey, 0x100u);
  bind_all();
  ibv_wr_set_sge(qp_, 1, 2, 3);  // a bind has no SGEs
  expect_refused(EINVAL);
  EXPECT_EQ(one.rkey, 0x100u);
  EXPECT_EQ(two.rkey, 0x200u);
  bind_all();
  EXPECT_EQ(ibv_wr_complete(qp_), 0);
  EXPECT_EQ(one.rkey, 0x177u) << "of the last bind";
  EXPECT_EQ(two.rkey, 0x266u);
  EXPECT_EQ(queues_.send_wqe(0).rkey, 0x155u);
}

TEST_F(Builder, RefusesSettersThatTheRequestDoesNotHave) {
  ibv_wr_start(qp_);
  ibv_wr_set_sge(qp_, 1, 2, 3);  // no request yet
  expect_refused(EINVAL);
  ibv_wr_start(qp_);
  ibv_wr_local_inv(qp_, 1);
  ibv_wr_set_sge(qp_, 1, 2, 3);
  expect_refused(EINVAL);
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  ibv_wr_set_xrc_srqn(qp_, 1);
  expect_refused(EINVAL);
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  ibv_wr_set_sge(qp_, 1, 2, 3);
  ibv_wr_set_sge(qp_, 1, 2, 3);  // a setter "should be called once after the WR builder"
  expect_refused(EINVAL);
}

// "The send_ops_flags should be set to the OR of the work request types that will be posted."
TEST_F(SendOnlyBuilder, RefusesOperationsThatWereNotAskedFor) {
  ibv_wr_start(qp_);
  ibv_wr_send_imm(qp_, 1);
  expect_refused(EINVAL);
  ibv_wr_start(qp_);
  ibv_wr_send_tso(qp_, nullptr, 0, 0);
  expect_refused(EOPNOTSUPP);
}

TEST_F(Builder, RefusesChecksumOffload) {
  qp_->wr_flags = IBV_SEND_IP_CSUM;
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  expect_refused(EINVAL);
}

// "UD QPs: ibv_wr_set_ud_addr() must be called"
TEST_F(UdBuilder, RequiresAnAddress) {
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  expect_refused(EINVAL);
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  ibv_wr_set_ud_addr(qp_, nullptr, 6, 7);
  expect_refused(EINVAL);
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  ibv_wr_set_ud_addr(qp_, &ah_, 6, 7);
  const abi::SendWqe wqe = complete();
  EXPECT_EQ(wqe.ud.ah, 5u);
  EXPECT_EQ(wqe.ud.remote_qpn, 6u);
  EXPECT_EQ(wqe.ud.remote_qkey, 7u);
}

// "XRC_SEND QPs: ibv_wr_set_xrc_srqn() must be called"
TEST_F(XrcBuilder, RequiresTheNumberOfTheSrq) {
  ibv_wr_start(qp_);
  ibv_wr_send(qp_);
  expect_refused(EINVAL);
  ibv_wr_start(qp_);
  ibv_wr_local_inv(qp_, 1);  // a local invalidate needs no SRQ number
  ibv_wr_send(qp_);
  ibv_wr_set_xrc_srqn(qp_, 0x321);
  complete();
  EXPECT_EQ(queues_.send_wqe(1).remote_srqn, 0x321u);
}

}  // namespace
}  // namespace rocemu::provider
