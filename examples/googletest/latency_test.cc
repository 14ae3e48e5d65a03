// Asserts how long a protocol takes on a network of 100 Gbit/s. The time is virtual, so it is equal
// in each run, on any machine, however busy. If the protocol needs one more round trip, the test
// fails.
#include <gtest/gtest.h>
#include <rocemu/testing.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace {

using rocemu::testing::ClockKind;
using rocemu::testing::Event;
using rocemu::testing::Fabric;
using rocemu::testing::Program;

// A message of 4,096 bytes is four frames, each of 1,106 bytes on the wire with FCS, preamble and
// gap. They cross two links of 500 ns each. The switch between the links forwards a frame when it
// has received all of it.
constexpr double kFrameNs = 1106 * 8 / 100.0;
constexpr double kOneWayNs = 4 * kFrameNs + 500 + kFrameNs + 500;
// A poll takes 50 ns, so a program sees a message up to 50 ns late; a round trip has two messages.
constexpr double kPollsNs = 2 * 50;

Fabric* fabric = nullptr;

/// Runs libibverbs' example. Returns the time from the first frame of a message to the last one.
double duration_of(int round_trips) {
  const size_t earlier = fabric->events("frame").size();
  const uint16_t port = rocemu::testing::free_port();
  const std::vector<std::string> command = {
      "ibv_rc_pingpong", "-g", "0", "-n", std::to_string(round_trips), "-p", std::to_string(port)};
  std::vector<std::string> server = command, client = command;
  server.insert(server.end(), {"-d", "rocemu0"});
  client.insert(client.end(), {"-d", "rocemu1", "localhost"});
  const std::shared_ptr<Program> listener = fabric->start(server);
  fabric->wait_listening(port);
  EXPECT_EQ(fabric->run(client), 0);
  EXPECT_EQ(listener->wait(), 0);
  std::vector<double> times;
  const std::vector<Event> frames = fabric->events("frame");
  for (size_t i = earlier; i < frames.size(); ++i) {
    if (frames[i].fields.at("opcode").find("SEND") != std::string::npos)
      times.push_back(std::stod(frames[i].fields.at("t")));
  }
  if (times.empty()) {
    ADD_FAILURE() << "no message was sent";
    return 0;
  }
  return *std::max_element(times.begin(), times.end()) -
         *std::min_element(times.begin(), times.end());
}

/// The time limit: the last of the 20 messages starts after 19 have arrived.
constexpr double kLimitNs = 19 * (kOneWayNs + kPollsNs) + 4 * kFrameNs;

TEST(Latency, TenRoundTripsAreInTime) {
  EXPECT_LE(duration_of(10), kLimitNs);
}

TEST(Latency, OneRoundTripMoreIsNoticed) {
  EXPECT_GT(duration_of(11), kLimitNs);
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  Fabric network(
      {.clock = ClockKind::kLockstep, .record = "recording", .further = {"--fabric", "star-16"}});
  fabric = &network;
  return RUN_ALL_TESTS();
}
