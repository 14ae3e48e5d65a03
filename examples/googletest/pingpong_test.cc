// A test suite with its own NIC. The tests start programs, or call verbs themselves.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rocemu/gtest.h>
#include <rocemu/testing.h>

#include <cerrno>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

namespace {

using rocemu::testing::Fabric;
using rocemu::testing::Program;

Fabric* fabric = nullptr;

class Pingpong : public testing::Test {
 protected:
  ~Pingpong() override { fabric->clear_rules(); }

  /// Runs libibverbs' example, with a server on one device and a client on the other. Returns the
  /// client's exit status.
  int run() {
    const uint16_t port = rocemu::testing::free_port();
    const std::vector<std::string> command = {"ibv_rc_pingpong",   "-g", "0", "-n", "10", "-p",
                                              std::to_string(port)};
    std::vector<std::string> server = command, client = command;
    server.insert(server.end(), {"-d", "rocemu0"});
    client.insert(client.end(), {"-d", "rocemu1", "localhost"});
    const std::shared_ptr<Program> listener = fabric->start(server);
    fabric->wait_listening(port);
    const int status = fabric->run(client);
    listener->end();  // if the client failed, the server waits for it for ever
    return status;
  }
};

TEST_F(Pingpong, SurvivesALostMessage) {
  fabric->add_rule("{name: lost, on: frame, opcode: SEND, nth: 3, do: drop}");
  EXPECT_EQ(run(), 0);
  EXPECT_EQ(fabric->rules().at(0).fired, 2u);  // one on each side
}

TEST_F(Pingpong, FailsWhenItsMemoryIsRefused) {
  fabric->add_rule("{on: verb, verb: reg_mr, device: rocemu1, do: {errno: ENOMEM}}");
  EXPECT_NE(run(), 0);
}

// fails on purpose, to show which files such a test leaves
TEST_F(Pingpong, DISABLED_LosesEverything) {
  fabric->add_rule("{on: frame, opcode: SEND, do: drop}");
  EXPECT_EQ(run(), 0);
}

TEST(Registration, IsRefusedWhenARuleSaysSo) {
  fabric->add_rule("{on: verb, verb: reg_mr, do: {errno: ENOMEM}}");
  ibv_device** devices = ibv_get_device_list(nullptr);
  ASSERT_NE(devices[0], nullptr);
  ibv_context* context = ibv_open_device(devices[0]);
  ibv_pd* pd = ibv_alloc_pd(context);
  static char buffer[4096];
  EXPECT_EQ(ibv_reg_mr(pd, buffer, sizeof buffer, 0), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  fabric->clear_rules();
  ibv_dealloc_pd(pd);
  ibv_close_device(context);
  ibv_free_device_list(devices);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  Fabric nic({.clock = rocemu::testing::ClockKind::kLockstep, .record = "recording"});
  rocemu::testing::keep_artifacts(nic, "rocemu-failed");
  fabric = &nic;
  return RUN_ALL_TESTS();
}
