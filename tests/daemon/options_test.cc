// Tests the daemon's command line: defaults, names and addresses, and one clear line for each
// error.
#include "emulator/daemon/daemon_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {
namespace {

using testing::HasSubstr;

Options parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"rocemud", "--dir", "d"});
  return *parse_options(static_cast<int>(arguments.size()), arguments.data());
}

std::string error_of(std::vector<const char*> arguments) {
  try {
    parse(std::move(arguments));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Options, DefaultIsAFabricOfTwo) {
  const Options options = parse({});
  EXPECT_EQ(options.dir, "d");
  ASSERT_EQ(options.fabric.devices.size(), 2u);
  EXPECT_EQ(options.fabric.devices[1].name, "rocemu1");
  EXPECT_FALSE(options.fabric.trace_frames);
  EXPECT_FALSE(options.fabric.devices[0].policy.require_grh);
  EXPECT_EQ(options.ready_fd, -1);
}

TEST(Options, DevicesCanBeNamedAndAddressed) {
  const Options options =
      parse({"--device", "mlx5_0", "--device", "mlx5_1=10.0.0.1,fd00::1", "--require-grh"});
  ASSERT_EQ(options.fabric.devices.size(), 2u);
  const engine::DeviceConfig& first = options.fabric.devices[0];
  const engine::DeviceConfig& second = options.fabric.devices[1];
  EXPECT_EQ(first.name, "mlx5_0");
  EXPECT_EQ(wire::to_string(first.addresses.at(0)), "127.0.0.1");
  EXPECT_EQ(second.name, "mlx5_1");
  ASSERT_EQ(second.addresses.size(), 2u);
  EXPECT_EQ(wire::to_string(second.addresses[0]), "10.0.0.1");
  EXPECT_EQ(wire::to_string(second.addresses[1]), "fd00::1");
  EXPECT_NE(first.mac, second.mac);
  EXPECT_TRUE(second.policy.require_grh);
}

TEST(Options, ADefaultDeviceInTheFirstPlaceHasTheMachinesAddresses) {
  EXPECT_TRUE(parse({}).addresses.first_has_machines);
  EXPECT_TRUE(parse({"--devices", "4"}).addresses.first_has_machines);
  EXPECT_TRUE(parse({"--device", "a", "--device", "b=10.0.0.1"}).addresses.first_has_machines);
  EXPECT_FALSE(parse({"--device", "a=10.0.0.1", "--device", "b"}).addresses.first_has_machines);
  EXPECT_FALSE(parse({"--udp", "--device", "a=eth0"}).addresses.first_has_machines);
  EXPECT_TRUE(parse({"--lockstep"}).addresses.first_has_machines);
}

TEST(Options, ADeviceCanBeAtAnInterfaceWithOrWithoutUdp) {
  const Options here = parse({"--device", "a", "--device", "b=eth0"});
  EXPECT_THAT(here.addresses.interfaces, testing::ElementsAre("", "eth0"));
  EXPECT_TRUE(here.udp.empty());
  const Options udp = parse({"--udp", "--device", "b=eth0"});
  ASSERT_EQ(udp.udp.size(), 1u);
  EXPECT_EQ(udp.udp[0].interface, "eth0");
}

TEST(Options, ACaptureMakesTheEngineTrace) {
  EXPECT_TRUE(parse({"--capture", "f.pcap"}).fabric.trace_frames);
  EXPECT_EQ(parse({"--capture", "f.pcap"}).capture_fd, -1);
  EXPECT_EQ(parse({"--capture", "-", "--capture-fd", "2"}).capture_fd, 2);
}

TEST(Options, AcknowledgementsAreCoalescedButNotInLockstep) {
  EXPECT_EQ(parse({}).fabric.ack_coalescing, 16u);
  EXPECT_EQ(parse({"--record", "d"}).fabric.ack_coalescing, 16u);
  EXPECT_EQ(parse({"--scenario", "f"}).fabric.ack_coalescing, 16u);
  EXPECT_EQ(parse({"--lockstep"}).fabric.ack_coalescing, 1u);
  EXPECT_EQ(parse({"--lockstep", "--ack-coalescing", "16"}).fabric.ack_coalescing, 16u);
  EXPECT_EQ(parse({"--ack-coalescing", "1"}).fabric.ack_coalescing, 1u);
  for (const char* wrong : {"0", "17", "-1", "x", ""}) {
    EXPECT_THAT(error_of({"--ack-coalescing", wrong}), HasSubstr("not a number from 1 to 16"));
  }
}

TEST(Options, AdversarialTakesClassesByNameAndMeansAllWithoutOne) {
  // Bit i is class i of the table in docs/adversarial.md.
  EXPECT_EQ(parse({}).fabric.adversarial, 0u);
  EXPECT_EQ(parse({"--adversarial"}).fabric.adversarial, 0b111111u);
  EXPECT_EQ(parse({"--adversarial=all"}).fabric.adversarial, 0b111111u);
  EXPECT_EQ(parse({"--adversarial=placement"}).fabric.adversarial, 0b000001u);
  EXPECT_EQ(parse({"--adversarial=relaxed,late-read"}).fabric.adversarial, 0b100010u);
  EXPECT_THAT(error_of({"--adversarial=placement,late"}),
              HasSubstr("no class 'late'; use placement, late-read, undefined, order, atomicity, "
                        "relaxed, or all"));
}

TEST(Options, BusyPollingIsForTheRealClock) {
  EXPECT_FALSE(parse({}).busy_poll);
  EXPECT_TRUE(parse({"--busy-poll"}).busy_poll);
  EXPECT_THAT(error_of({"--busy-poll", "--lockstep"}), HasSubstr("only on the real clock"));
  EXPECT_FALSE(parse({}).exact_memory);
  EXPECT_TRUE(parse({"--exact-memory"}).exact_memory);
  EXPECT_TRUE(parse({"--lockstep"}).exact_memory);
  EXPECT_TRUE(parse({"--adversarial"}).exact_memory);
  EXPECT_FALSE(parse({"--lockstep"}).sleep_between_turns);
  EXPECT_TRUE(parse({"--no-spin", "--lockstep"}).sleep_between_turns);
  EXPECT_THAT(error_of({"--no-spin"}), HasSubstr("needs --lockstep"));
}

TEST(Options, ReportsErrors) {
  EXPECT_THAT(error_of({"--devices", "0"}), HasSubstr("'0' is not a number from 1 to 250"));
  EXPECT_THAT(error_of({"--devices", "251"}), HasSubstr("250"));
  EXPECT_THAT(error_of({"--devices", "2x"}), HasSubstr("'2x'"));
  EXPECT_THAT(error_of({"--devices", "2", "--device", "a"}), HasSubstr("not both"));
  EXPECT_THAT(error_of({"--device", "a=1.2.3"}), HasSubstr("'1.2.3' is not an IPv4 or IPv6"));
  EXPECT_THAT(error_of({"--device", "a="}), HasSubstr("'' is not an IPv4 or IPv6"));
  EXPECT_THAT(error_of({"--device", "a/b"}), HasSubstr("a device's name must have"));
  EXPECT_THAT(error_of({"--device", ".."}), HasSubstr("a device's name must have"));
  EXPECT_THAT(error_of({"--device", "a", "--device", "a"}), HasSubstr("two devices are named 'a'"));
  EXPECT_THAT(error_of({"--device", "a", "--device", "b=127.0.0.1"}), HasSubstr("given twice"));
  EXPECT_THAT(error_of({"--seed", "-1"}), HasSubstr("--seed"));
  EXPECT_THAT(error_of({"--ready-fd", "9999"}), HasSubstr("9999 is not open"));
  EXPECT_THAT(error_of({"--log-level", "loud"}), HasSubstr("'loud'"));
  EXPECT_THAT(error_of({"--udp"}), HasSubstr("--device rocemu0=eth0"));
  EXPECT_THAT(error_of({"--strict-icrc"}), HasSubstr("--udp"));
  EXPECT_THAT(error_of({"--udp", "--device", "a=eth0", "--lockstep"}), HasSubstr("real clock"));
  EXPECT_THAT(error_of({"--scenario-fd", "0"}), HasSubstr("needs the scenario's name"));
  EXPECT_THAT(error_of({"--scenario", "f", "--scenario-fd", "9999"}), HasSubstr("is not open"));
  EXPECT_THAT(error_of({"--device"}), HasSubstr("--device"));
  EXPECT_THAT(error_of({"--dev", "1"}), HasSubstr("--dev"));
  EXPECT_THAT(error_of({"more"}), HasSubstr("only options"));
}

TEST(Options, SaysWhatToDoInsteadOfARemovedOption) {
  EXPECT_EQ(
      error_of({"--threads"}),
      "option '--threads' no longer exists; leave it out: one thread of the daemon serves all "
      "devices");
}

TEST(Options, FindsTheReadyFdInAWrongCommandLine) {
  const char* const separate[] = {"rocemud", "--bogus", "--ready-fd", "5"};
  const char* const joined[] = {"rocemud", "--ready-fd=6"};
  const char* const none[] = {"rocemud", "--ready-fd", "x"};
  EXPECT_EQ(find_ready_fd(4, separate), 5);
  EXPECT_EQ(find_ready_fd(2, joined), 6);
  EXPECT_EQ(find_ready_fd(3, none), -1);
}

}  // namespace
}  // namespace rocemu::daemon
