// Tests ibv_post_send(3) and ibv_post_recv(3) with work queues that the test reads.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "tests/provider/fake_queues.h"
#include "tests/support/post_send_table.h"
#include "verbs_provider/base/verbs.h"

namespace rocemu::provider {
namespace {

class Post : public testing::Test {
 protected:
  explicit Post(ibv_qp_type type = IBV_QPT_RC) : queues_(type) {
    wr_.opcode = IBV_WR_SEND;
    wr_.wr_id = 42;
  }

  int send(ibv_send_wr* list) {
    bad_ = nullptr;
    return post_send(queues_.qp_base(), list, &bad_);
  }
  int recv(ibv_recv_wr* list) {
    bad_recv_ = nullptr;
    return post_recv(queues_.qp_base(), list, &bad_recv_);
  }
  void expect_refused(int error) {
    EXPECT_EQ(send(&wr_), error);
    EXPECT_EQ(bad_, &wr_);
    EXPECT_EQ(queues_.doorbell_count(), 0u);
  }

  FakeQueues queues_;
  ibv_send_wr wr_{};
  ibv_send_wr* bad_ = nullptr;
  ibv_recv_wr* bad_recv_ = nullptr;
};

class PostUd : public Post {
 protected:
  PostUd() : Post(IBV_QPT_UD) {}
};

TEST_F(Post, WritesTheRequestAndItsSges) {
  ibv_sge sges[2] = {{0x1000, 10, 1}, {0x2000, 20, 2}};
  wr_.sg_list = sges;
  wr_.num_sge = 2;
  wr_.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  wr_.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
  wr_.imm_data = 0x01020304;
  wr_.wr.rdma.remote_addr = 0x3000;
  wr_.wr.rdma.rkey = 9;
  ASSERT_EQ(send(&wr_), 0);
  const abi::SendWqe wqe = queues_.send_wqe(0);
  EXPECT_EQ(wqe.wr_id, 42u);
  EXPECT_EQ(wqe.opcode, static_cast<uint32_t>(abi::WrOpcode::kRdmaWriteWithImm));
  EXPECT_EQ(wqe.flags, abi::kSendSignaled | abi::kSendSolicited);
  EXPECT_EQ(wqe.imm_data, 0x01020304u);
  EXPECT_EQ(wqe.remote_address, 0x3000u);
  EXPECT_EQ(wqe.rkey, 9u);
  EXPECT_EQ(wqe.num_sge, 2u);
  EXPECT_EQ(memcmp(queues_.send_slot(0) + sizeof(wqe), sges, sizeof(sges)), 0);
}

TEST_F(Post, WritesTheOperandsOfAtomics) {
  wr_.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  wr_.wr.atomic = {.remote_addr = 1, .compare_add = 2, .swap = 3, .rkey = 4};
  ASSERT_EQ(send(&wr_), 0);
  const abi::SendWqe wqe = queues_.send_wqe(0);
  EXPECT_EQ(wqe.remote_address, 1u);
  EXPECT_EQ(wqe.atomic.compare_add, 2u);
  EXPECT_EQ(wqe.atomic.swap, 3u);
  EXPECT_EQ(wqe.rkey, 4u);
}

TEST_F(Post, WritesTheKeyToInvalidate) {
  wr_.opcode = IBV_WR_SEND_WITH_INV;
  wr_.invalidate_rkey = 0x77;
  ASSERT_EQ(send(&wr_), 0);
  EXPECT_EQ(queues_.send_wqe(0).imm_data, 0x77u);
}

class PostXrc : public Post {
 protected:
  PostXrc() : Post(IBV_QPT_XRC_SEND) {}
};

TEST_F(PostXrc, WritesTheNumberOfTheSrqBesideTheOperands) {
  wr_.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr_.wr.atomic = {.remote_addr = 1, .compare_add = 2, .swap = 0, .rkey = 4};
  wr_.qp_type.xrc.remote_srqn = 0x321;
  ASSERT_EQ(send(&wr_), 0);
  EXPECT_EQ(queues_.send_wqe(0).remote_srqn, 0x321u);
  EXPECT_EQ(queues_.send_wqe(0).atomic.compare_add, 2u);
}

TEST_F(PostXrc, HasNoReceiveQueue) {
  ibv_recv_wr wr{};
  EXPECT_EQ(recv(&wr), EINVAL);
}

class PostBind : public Post {
 protected:
  PostBind() {
    mr_.lkey = 3;
    window_.handle = 4;
    window_.type = IBV_MW_TYPE_2;
    window_.rkey = 0x1ff;
    wr_.opcode = IBV_WR_BIND_MW;
    wr_.bind_mw.mw = &window_;
    wr_.bind_mw.rkey = 0x155;
    wr_.bind_mw.bind_info = {
        .mr = &mr_, .addr = 0x1000, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
  }

  ibv_mr mr_{};
  ibv_mw window_{};
};

TEST_F(PostBind, WritesWhatToBindToWhat) {
  ASSERT_EQ(send(&wr_), 0);
  const abi::SendWqe wqe = queues_.send_wqe(0);
  EXPECT_EQ(wqe.window, 4u);
  EXPECT_EQ(wqe.rkey, 0x155u);
  EXPECT_EQ(wqe.remote_address, 0x1000u);
  EXPECT_EQ(wqe.bind.length, 64u);
  EXPECT_EQ(wqe.bind.lkey, 3u);
  EXPECT_EQ(wqe.bind.access, static_cast<uint32_t>(IBV_ACCESS_REMOTE_WRITE));
}

// As with mlx5, irdma and rxe, the low 8 bits of the key belong to the program, and the others to
// the window.
TEST_F(PostBind, GivesTheWindowItsNewKeyAtOnce) {
  wr_.bind_mw.rkey = 0xabcdef55;
  ASSERT_EQ(send(&wr_), 0);
  EXPECT_EQ(queues_.send_wqe(0).rkey, 0x155u);
  EXPECT_EQ(window_.rkey, 0x155u);
}

TEST_F(PostBind, LeavesTheKeyIfNothingIsPosted) {
  ibv_mw other = window_;
  ibv_send_wr second = wr_;
  second.bind_mw.mw = &other;
  second.bind_mw.bind_info.mr = nullptr;
  wr_.next = &second;
  EXPECT_EQ(send(&wr_), EINVAL);
  EXPECT_EQ(window_.rkey, 0x155u) << "was posted";
  EXPECT_EQ(other.rkey, 0x1ffu) << "was not";
}

TEST_F(PostBind, RefusesWindowsOfType1AndLengthsWithoutARegion) {
  window_.type = IBV_MW_TYPE_1;
  expect_refused(EINVAL);
  window_.type = IBV_MW_TYPE_2;
  wr_.bind_mw.bind_info.mr = nullptr;
  expect_refused(EINVAL);
  wr_.bind_mw.mw = nullptr;
  expect_refused(EINVAL);
}

// ibv_bind_mw(3): "In case of a success, the R_key of the memory window after the bind is returned"
TEST_F(PostBind, OfType1ChoosesTheNextKey) {
  ibv_mw_bind bind{.wr_id = 7, .send_flags = IBV_SEND_SIGNALED, .bind_info = {}};
  EXPECT_EQ(bind_mw(queues_.qp_base(), &window_, &bind), EINVAL) << "a window of type 2";
  EXPECT_EQ(window_.rkey, 0x1ffu);
  window_.type = IBV_MW_TYPE_1;
  ASSERT_EQ(bind_mw(queues_.qp_base(), &window_, &bind), 0);
  EXPECT_EQ(window_.rkey, 0x100u) << "the 8 low bits, ibv_inc_rkey(3)";
  EXPECT_EQ(queues_.send_wqe(0).rkey, 0x100u);
  EXPECT_EQ(queues_.send_wqe(0).wr_id, 7u);
  EXPECT_EQ(queues_.send_wqe(0).bind.length, 0u) << "which unbinds";
}

TEST_F(Post, OfALocalInvalidationHasNoData) {
  ibv_sge sge{0x1000, 10, 1};
  wr_.opcode = IBV_WR_LOCAL_INV;
  wr_.invalidate_rkey = 0x77;
  wr_.sg_list = &sge;
  wr_.num_sge = 1;
  ASSERT_EQ(send(&wr_), 0);
  EXPECT_EQ(queues_.send_wqe(0).imm_data, 0x77u);
  EXPECT_EQ(queues_.send_wqe(0).num_sge, 0u);
}

TEST_F(Post, RefusesChecksumOffload) {
  wr_.send_flags = IBV_SEND_IP_CSUM;
  expect_refused(EINVAL);
}

TEST_F(PostUd, WritesTheDestination) {
  ibv_ah ah{};
  ah.handle = 5;
  wr_.wr.ud = {.ah = &ah, .remote_qpn = 6, .remote_qkey = 7};
  ASSERT_EQ(send(&wr_), 0);
  const abi::SendWqe wqe = queues_.send_wqe(0);
  EXPECT_EQ(wqe.ud.ah, 5u);
  EXPECT_EQ(wqe.ud.remote_qpn, 6u);
  EXPECT_EQ(wqe.ud.remote_qkey, 7u);
}

// ibv_post_send(3): with IBV_SEND_INLINE the buffers can be reused once the call returns.
TEST_F(Post, CopiesInlineDataAtOnce) {
  char first[] = "work ", second[] = "request";
  ibv_sge sges[2] = {{reinterpret_cast<uint64_t>(first), 5, 0},
                     {reinterpret_cast<uint64_t>(second), 8, 0}};
  wr_.sg_list = sges;
  wr_.num_sge = 2;
  wr_.send_flags = IBV_SEND_INLINE;
  ASSERT_EQ(send(&wr_), 0);
  memset(first, 0, sizeof(first));
  memset(second, 0, sizeof(second));
  EXPECT_EQ(queues_.send_wqe(0).inline_size, 13u);
  EXPECT_EQ(queues_.send_wqe(0).num_sge, 0u);
  EXPECT_STREQ(reinterpret_cast<const char*>(queues_.send_slot(0) + sizeof(abi::SendWqe)),
               "work request");
}

TEST_F(Post, RefusesMoreInlineDataThanTheQueueTakes) {
  char data[FakeQueues::kMaxInline + 1] = {};
  ibv_sge sge{reinterpret_cast<uint64_t>(data), FakeQueues::kMaxInline, 0};
  wr_.sg_list = &sge;
  wr_.num_sge = 1;
  wr_.send_flags = IBV_SEND_INLINE;
  EXPECT_EQ(send(&wr_), 0);
  sge.length = FakeQueues::kMaxInline + 1;
  EXPECT_EQ(send(&wr_), EINVAL);
  ibv_sge huge[2] = {{0, 0xffffffff, 0}, {0, 1, 0}};  // 2^32 together
  wr_.sg_list = huge;
  wr_.num_sge = 2;
  EXPECT_EQ(send(&wr_), EINVAL);
}

TEST_F(Post, RefusesInlineDataOfAnRdmaRead) {
  wr_.opcode = IBV_WR_RDMA_READ;
  wr_.send_flags = IBV_SEND_INLINE;
  expect_refused(EINVAL);
}

TEST_F(Post, RefusesTooManySges) {
  wr_.num_sge = FakeQueues::kMaxSge + 1;
  expect_refused(EINVAL);
  wr_.num_sge = -1;
  expect_refused(EINVAL);
}

// The provider accepts the requests that the engine executes
// (tests/engine/transport/post_send_table_test.cc).
TEST(PostSendTable, IsWhatCanBePosted) {
  for (const ibv_qp_type type :
       {IBV_QPT_UD, IBV_QPT_UC, IBV_QPT_RC, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV}) {
    for (uint32_t opcode = 0; opcode < test::kOpcodesTried; ++opcode) {
      FakeQueues queues(type);
      ibv_ah ah{};
      ibv_mr mr{};
      ibv_mw window{};
      window.type = IBV_MW_TYPE_2;
      ibv_send_wr wr{};
      std::memcpy(&wr.opcode, &opcode, sizeof opcode);
      if (type == IBV_QPT_UD) wr.wr.ud.ah = &ah;
      if (opcode == IBV_WR_BIND_MW) wr.bind_mw = {&window, 1, {&mr, 0, 0, 0}};
      // FLUSH can only be posted with ibv_wr_flush(): ibv_send_wr has no fields for its parameters.
      const bool can_be_posted = test::device_supports(static_cast<abi::QpType>(type), opcode) &&
                                 opcode != static_cast<uint32_t>(abi::WrOpcode::kFlush);
      ibv_send_wr* bad = nullptr;
      EXPECT_EQ(post_send(queues.qp_base(), &wr, &bad), can_be_posted ? 0 : EINVAL)
          << "QP type " << type << ", opcode " << opcode;
    }
  }
}

TEST_F(PostUd, RefusesWritesAndSendsWithoutAnAddress) {
  expect_refused(EINVAL);
  ibv_ah ah{};
  wr_.wr.ud.ah = &ah;
  wr_.opcode = IBV_WR_RDMA_WRITE;
  expect_refused(EINVAL);
}

TEST_F(Post, RefusesSendsBeforeReadyToSend) {
  for (const auto state : {abi::QpState::kReset, abi::QpState::kInit, abi::QpState::kRtr}) {
    queues_.qp->state = state;
    expect_refused(EINVAL);
  }
  for (const auto state : {abi::QpState::kSqd, abi::QpState::kSqe, abi::QpState::kErr}) {
    queues_.qp->state = state;
    EXPECT_EQ(send(&wr_), 0);
  }
}

TEST_F(Post, RefusesReceivesInResetOnly) {
  ibv_recv_wr wr{};
  queues_.qp->state = abi::QpState::kReset;
  EXPECT_EQ(recv(&wr), EINVAL);
  EXPECT_EQ(bad_recv_, &wr);
  queues_.qp->state = abi::QpState::kInit;
  EXPECT_EQ(recv(&wr), 0);
}

TEST_F(Post, PostsAListWithOneDoorbell) {
  ibv_send_wr second = wr_, third = wr_;
  wr_.next = &second;
  second.next = &third;
  third.wr_id = 44;
  EXPECT_EQ(send(&wr_), 0);
  EXPECT_EQ(bad_, nullptr);
  EXPECT_EQ(queues_.doorbell_count(), 1u);
  EXPECT_EQ(queues_.last_doorbell().kind, abi::DoorbellKind::kSend);
  EXPECT_EQ(queues_.last_doorbell().object, FakeQueues::kQpNumber);
  EXPECT_EQ(queues_.last_doorbell().value, 3u);
  EXPECT_EQ(queues_.send_wqe(2).wr_id, 44u);
}

// ibv_post_send(3) stops at the first failure and returns the failed request through bad_wr.
TEST_F(Post, PostsWhatComesBeforeABadRequest) {
  ibv_send_wr second = wr_, third = wr_;
  wr_.next = &second;
  second.next = &third;
  second.num_sge = FakeQueues::kMaxSge + 1;
  EXPECT_EQ(send(&wr_), EINVAL);
  EXPECT_EQ(bad_, &second);
  EXPECT_EQ(queues_.last_doorbell().value, 1u);
}

TEST_F(Post, FindsTheQueueFullUntilACompletionIsPolled) {
  for (uint32_t i = 0; i < FakeQueues::kMaxWr; ++i) ASSERT_EQ(send(&wr_), 0);
  EXPECT_EQ(send(&wr_), ENOMEM);
  EXPECT_EQ(bad_, &wr_);
  queues_.complete(queues_.completion(1, 2));
  EXPECT_EQ(send(&wr_), ENOMEM) << "it is polling that counts, not the daemon's speed";
  ibv_wc wc;
  ASSERT_EQ(poll_cq(queues_.cq_base(), 1, &wc), 1);
  EXPECT_EQ(send(&wr_), 0);
  EXPECT_EQ(send(&wr_), 0);
  EXPECT_EQ(send(&wr_), ENOMEM);
}

TEST_F(Post, ReceivesHaveAQueueOfTheirOwn) {
  ibv_sge sge{0x4000, 64, 3};
  ibv_recv_wr wr{.wr_id = 8, .next = nullptr, .sg_list = &sge, .num_sge = 1};
  for (uint32_t i = 0; i < FakeQueues::kMaxWr; ++i) ASSERT_EQ(recv(&wr), 0);
  EXPECT_EQ(recv(&wr), ENOMEM);
  EXPECT_EQ(send(&wr_), 0);
  abi::RecvWqe wqe;
  memcpy(&wqe, queues_.recv_slot(2), sizeof(wqe));
  EXPECT_EQ(wqe.wr_id, 8u);
  EXPECT_EQ(wqe.num_sge, 1u);
  EXPECT_EQ(memcmp(queues_.recv_slot(2) + sizeof(wqe), &sge, sizeof(sge)), 0);
}

TEST_F(Post, FailsWithoutADaemonAndWithoutHavingPosted) {
  queues_.doorbells->producer = abi::kDoorbellEntries;  // full
  queues_.daemon_dies();
  EXPECT_EQ(send(&wr_), EIO);
  EXPECT_EQ(bad_, &wr_);
  EXPECT_EQ(queues_.qp->send.posted, 0u);
}

}  // namespace
}  // namespace rocemu::provider
