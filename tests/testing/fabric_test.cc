// rocemu::testing::Fabric, in a process for which no variable was set: its own libibverbs calls
// reach the NIC.
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "tests/testing/connection.h"

namespace rocemu::testing {

Fabric* fabric = nullptr;

namespace {

using namespace std::chrono_literals;

std::string recording;

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
