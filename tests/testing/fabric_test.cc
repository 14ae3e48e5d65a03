// rocemu::testing::Fabric, in a process for which no variable was set: its own libibverbs calls
// reach the NIC.
#include "testing/cpp/rocemu/testing.h"

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace rocemu::testing {
namespace {

using namespace std::chrono_literals;

Fabric* fabric = nullptr;
std::string recording;

/// Two connected RC QPs, on rocemu0 and rocemu1.
class Connection : public ::testing::Test {
 protected:
  struct Side {
    ibv_context* context = nullptr;
    ibv_pd* pd = nullptr;
    ibv_cq* cq = nullptr;
    ibv_qp* qp = nullptr;
    ibv_mr* mr = nullptr;
    char buffer[64] = {};
  };

  void SetUp() override {
    ibv_device** devices = ibv_get_device_list(nullptr);
    ASSERT_NE(devices, nullptr);
    for (int i = 0; i < 2; ++i) {
      ASSERT_NE(devices[i], nullptr);
      open(sides[i], devices[i]);
    }
    ibv_free_device_list(devices);
    for (int i = 0; i < 2; ++i) connect(sides[i], sides[1 - i]);
  }
  void TearDown() override {
    for (Side& side : sides) {
      EXPECT_EQ(ibv_destroy_qp(side.qp), 0);
      EXPECT_EQ(ibv_destroy_cq(side.cq), 0);
      EXPECT_EQ(ibv_dereg_mr(side.mr), 0);
      EXPECT_EQ(ibv_dealloc_pd(side.pd), 0);
      EXPECT_EQ(ibv_close_device(side.context), 0);
    }
    fabric->clear_rules();
  }

  static void open(Side& side, ibv_device* device) {
    side.context = ibv_open_device(device);
    ASSERT_NE(side.context, nullptr);
    side.pd = ibv_alloc_pd(side.context);
    side.cq = ibv_create_cq(side.context, 16, nullptr, nullptr, 0);
    side.mr = ibv_reg_mr(side.pd, side.buffer, sizeof side.buffer, IBV_ACCESS_LOCAL_WRITE);
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = side.cq;
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = 1;
    init.cap = {8, 8, 1, 1, 0};
    side.qp = ibv_create_qp(side.pd, &init);
    ASSERT_NE(side.qp, nullptr);
  }
  static void connect(Side& side, const Side& peer) {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    ASSERT_EQ(ibv_modify_qp(side.qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
              0);
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = peer.qp->qp_num;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    ASSERT_EQ(ibv_query_gid(peer.context, 1, 0, &attr.ah_attr.grh.dgid), 0);
    ASSERT_EQ(ibv_modify_qp(side.qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
              0);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    ASSERT_EQ(ibv_modify_qp(side.qp, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
              0);
  }
  void send_a_message() {
    ibv_sge sge{reinterpret_cast<uintptr_t>(sides[1].buffer), 64, sides[1].mr->lkey};
    ibv_recv_wr recv{};
    recv.sg_list = &sge;
    recv.num_sge = 1;
    ibv_recv_wr* bad_recv = nullptr;
    ASSERT_EQ(ibv_post_recv(sides[1].qp, &recv, &bad_recv), 0);
    ibv_sge from{reinterpret_cast<uintptr_t>(sides[0].buffer), 64, sides[0].mr->lkey};
    ibv_send_wr send{};
    send.sg_list = &from;
    send.num_sge = 1;
    send.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(sides[0].qp, &send, &bad), 0);
  }
  /// What is there now.
  int completions(const Side& side, ibv_wc_status status = IBV_WC_SUCCESS) {
    ibv_wc wc{};
    int count = 0;
    while (ibv_poll_cq(side.cq, 1, &wc) == 1) {
      EXPECT_EQ(wc.status, status) << ibv_wc_status_str(wc.status);
      ++count;
    }
    return count;
  }

  Side sides[2];
};

TEST_F(Connection, WorksWithoutAnyRule) {
  send_a_message();
  fabric->wait_until_idle();
  EXPECT_EQ(completions(sides[0]), 1);
  EXPECT_EQ(completions(sides[1]), 1);
  EXPECT_FALSE(fabric->events("completion").empty());
}

TEST_F(Connection, TimeMovesWhenTheTestSaysSo) {
  fabric->hold_time();
  fabric->add_rule("{name: lost, on: frame, opcode: SEND, nth: 1, do: drop}");
  const uint64_t timeouts = fabric->counters("rocemu0").at("ack_timeouts");
  send_a_message();
  fabric->advance(60ms);
  EXPECT_EQ(completions(sides[0]), 0);
  EXPECT_EQ(fabric->counters("rocemu0").at("ack_timeouts"), timeouts);
  // IBTA vol 1, 9.7.6.1.3: 4.096 us * 2^14 at least, 4 times that at most.
  fabric->advance(4 * 68ms);
  EXPECT_EQ(completions(sides[0]), 1);
  EXPECT_EQ(fabric->counters("rocemu0").at("ack_timeouts"), timeouts + 1);
  EXPECT_EQ(completions(sides[1]), 1);
  EXPECT_TRUE(fabric->clock().held);
  fabric->hold_time(false);
}

TEST_F(Connection, WhatIsRetriedForEverDoesNotKeepTheTestForEver) {
  fabric->hold_time();
  // rnr_retry 7: without end (ibv_modify_qp(3)).
  fabric->add_rule("{name: never, on: request, do: {rnr: 31}}");
  send_a_message();
  try {
    fabric->advance(std::chrono::hours(24 * 365));
    ADD_FAILURE() << "a year is over";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("goes on for ever"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(completions(sides[0]), 0);
  fabric->clear_rules();
  fabric->advance(1s);
  EXPECT_EQ(completions(sides[0]), 1);
  EXPECT_EQ(completions(sides[1]), 1);
  fabric->hold_time(false);
}

TEST_F(Connection, ARuleActsAndIsReported) {
  fabric->load_scenario("rules:\n- {name: no, on: request, do: {nak: remote_access_error}}\n");
  send_a_message();
  fabric->wait_until_idle();
  EXPECT_EQ(completions(sides[0], IBV_WC_REM_ACCESS_ERR), 1);
  ASSERT_EQ(fabric->rules().size(), 1u);
  EXPECT_EQ(fabric->rules()[0].name, "no");
  EXPECT_EQ(fabric->rules()[0].fired, 1u);
  EXPECT_EQ(fabric->events("fault").back().fields.at("rule"), "no");
  fabric->clear_rule("no");
  EXPECT_TRUE(fabric->rules().empty());
  EXPECT_EQ(completions(sides[1], IBV_WC_WR_FLUSH_ERR), 1);
}

TEST(Refusals, AreErrorsInWords) {
  const auto message_of = [](auto call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message_of([] { fabric->add_rule("{on: frame, do: dorp}"); }).find("rule:1:17"),
            std::string::npos);
  EXPECT_NE(message_of([] { fabric->counters("mlx5_7"); }).find("mlx5_7"), std::string::npos);
  EXPECT_NE(message_of([] { Fabric({.scenario = "/none.yaml"}); }).find("could not start"),
            std::string::npos);
  EXPECT_NE(fabric->request(R"({"command":"version"})").find("rocemu1"), std::string::npos);
}

TEST(Lifetime, ASecondFabricGivesWayToTheFirst) {
  std::string directory;
  {
    Fabric second({.devices = {"mlx5_9=10.9.9.9"}});
    directory = second.directory();
    EXPECT_EQ(std::string(getenv("ROCEMU_DIR")), directory);
    EXPECT_NE(second.show().find("mlx5_9"), std::string::npos);
  }
  EXPECT_FALSE(std::filesystem::exists(directory));
  EXPECT_EQ(std::string(getenv("ROCEMU_DIR")), fabric->directory());
}

}  // namespace
}  // namespace rocemu::testing

int main(int argc, char** argv) {
  using namespace rocemu::testing;
  ::testing::InitGoogleTest(&argc, argv);
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  char scratch[] = "/tmp/rocemu-test-XXXXXX";
  if (mkdtemp(scratch) == nullptr) return 1;
  recording = scratch;
  int status = 1;
  {
    Fabric nic({.clock = ClockKind::kVirtual, .record = recording});
    fabric = &nic;
    status = RUN_ALL_TESTS();
  }
  std::filesystem::remove_all(recording);
  return status;
}
