// Tests rocemu::testing::Fabric in a process without environment variables for it: the process's
// own calls of libibverbs must reach the NIC.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <thread>

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
  // IBTA vol 1, 9.7.6.1.3: each timeout is between 4.096 us * 2^14 and 4 times that.
  fabric->advance(4 * 68ms);
  EXPECT_EQ(completions(sides[0]), 1);
  EXPECT_EQ(fabric->counters("rocemu0").at("ack_timeouts"), timeouts + 1);
  EXPECT_EQ(completions(sides[1]), 1);
  EXPECT_TRUE(fabric->clock().held);
  fabric->hold_time(false);
}

TEST_F(Connection, EndlessRetriesDoNotHangTheTest) {
  fabric->hold_time();
  // ibv_modify_qp(3): with an rnr_retry of 7, there is no limit.
  fabric->add_rule("{name: never, on: request, do: {rnr: 31}}");
  send_a_message();
  try {
    fabric->advance(std::chrono::hours(24 * 365));
    ADD_FAILURE() << "a year is over";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("may repeat forever"), std::string::npos)
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

TEST_F(Connection, FramesAreEvents) {
  send_a_message();
  fabric->wait_until_idle();
  int sends = 0;
  for (const Event& frame : fabric->events("frame")) {
    sends += frame.fields.at("opcode") == "RC SEND Only" &&
                     frame.fields.at("qp") == std::to_string(sides[1].qp->qp_num)
                 ? 1
                 : 0;
  }
  EXPECT_EQ(sends, 1);
}

TEST_F(Connection, CanProceedFrameByFrame) {
  fabric->pause();
  send_a_message();
  const std::vector<SteppedFrame> stepped = fabric->step();
  ASSERT_EQ(stepped.size(), 1u);
  EXPECT_NE(stepped[0].frame.find("RC SEND Only"), std::string::npos) << stepped[0].frame;
  EXPECT_NE(stepped[0].before, stepped[0].after);
  EXPECT_EQ(completions(sides[0]), 0);
  EXPECT_EQ(completions(sides[1]), 1);
  fabric->resume();
  fabric->wait_until_idle();
  EXPECT_EQ(completions(sides[0]), 1);
}

TEST_F(Connection, ARulePausesTheNic) {
  fabric->add_rule("{on: frame, opcode: SEND, nth: 1, total: 1, do: pause}");
  send_a_message();
  // The NIC may answer rules() before it has noticed the posted message.
  while (fabric->rules().at(0).fired == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(fabric->rules().at(0).fired, 1u);
  EXPECT_EQ(completions(sides[1]), 0);
  ASSERT_EQ(fabric->step().size(), 1u);
  EXPECT_EQ(completions(sides[1]), 1);
  EXPECT_EQ(completions(sides[0]), 0);
  fabric->resume();
  fabric->wait_until_idle();
  EXPECT_EQ(completions(sides[0]), 1);
}

TEST_F(Connection, ItsTimelineAndFramesCanBeKept) {
  send_a_message();
  fabric->wait_until_idle();
  const std::string page = recording + "/page.html", frames = recording + "/frames.pcap";
  fabric->timeline(page);
  fabric->capture(frames);
  EXPECT_GT(std::filesystem::file_size(page), 1000u);
  EXPECT_GT(std::filesystem::file_size(frames), 24u);
}

TEST(Programs, SeeTheDevicesAndEndWithTheFabric) {
  pid_t left = 0;
  {
    Fabric nic;
    EXPECT_EQ(nic.run({"sh", "-c", "test -n \"$ROCEMU_DIR\" && test -n \"$LD_PRELOAD\""}), 0);
    EXPECT_EQ(nic.run({"sh", "-c", "exit 7"}), 7);
    const auto program = nic.start({"sh", "-c", "echo said; echo wrong >&2; exec sleep 1000"});
    while (program->output() != "said\nwrong\n") {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(program->is_running());
    left = program->pid();
    try {
      program->wait(std::chrono::milliseconds(10));
      ADD_FAILURE() << "it sleeps";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("wrong"), std::string::npos);
    }
  }
  EXPECT_EQ(kill(left, 0), -1);
  Fabric nic;
  EXPECT_THROW(nic.start({"/no/such/program"}), Error);
}

TEST(Programs, AreWaitedForUntilTheyListen) {
  Fabric nic;
  const uint16_t port = free_port();
  EXPECT_THROW(nic.wait_listening(port, std::chrono::milliseconds(50)), Error);
  const auto server = nic.start({"ibv_rc_pingpong", "-g", "0", "-p", std::to_string(port)});
  nic.wait_listening(port);
  server->end();
  EXPECT_FALSE(server->is_running());
  try {
    nic.wait_listening(port);
    ADD_FAILURE() << "nobody listens any more";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the programs ended"), std::string::npos);
  }
}

TEST(Devices, LoseTheirCableAndGo) {
  Fabric nic;
  nic.set_port("rocemu0", false);
  EXPECT_NE(nic.show().find("DOWN"), std::string::npos);
  nic.set_port("rocemu0", true);
  EXPECT_EQ(nic.show().find("DOWN"), std::string::npos);
  nic.remove_device("rocemu1");
  EXPECT_THROW(nic.set_port("rocemu1", true), Error);
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
  const std::string refused = message_of([] { Fabric({.scenario = "/none.yaml"}); });
  EXPECT_NE(refused.find("could not start"), std::string::npos);
  EXPECT_NE(refused.find("/none.yaml"), std::string::npos) << refused;
  EXPECT_NE(message_of([] {
              Fabric({.adversarial = "latency"});
            }).find("--adversarial has no class 'latency'"),
            std::string::npos);
  EXPECT_EQ(message_of([] { Fabric({.seed = 3, .adversarial = "order,placement"}); }), "");
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
    Fabric nic({.clock = ClockKind::kLockstep, .record = recording});
    fabric = &nic;
    status = RUN_ALL_TESTS();
  }
  std::filesystem::remove_all(recording);
  return status;
}
