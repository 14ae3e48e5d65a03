// Tests the checks of a fabric's options: limits, sizes, and valid combinations.
#include "emulator/options/checked_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "emulator/options/describe.h"
#include "emulator/options/removed_options.h"

namespace rocemu::options {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

FabricOptions checked(const std::vector<std::string>& arguments) {
  boost::program_options::variables_map values;
  store(boost::program_options::command_line_parser(arguments)
            .options(options_of(Command::kDaemon))
            .run(),
        values);
  return check_options(values);
}

std::string error_of(const std::vector<std::string>& arguments) {
  try {
    checked(arguments);
  } catch (const OptionError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CheckedOptions, TakeTheFirstAndTheLastNumberOfARange) {
  EXPECT_EQ(checked({"--devices", "1"}).devices.size(), 1u);
  EXPECT_EQ(checked({"--devices", "250"}).devices.size(), 250u);
  EXPECT_THAT(error_of({"--devices", "0"}), HasSubstr("from 1 to 250"));
  EXPECT_THAT(error_of({"--devices", "251"}), HasSubstr("from 1 to 250"));

  EXPECT_EQ(checked({"--seed", "0"}).seed, 0u);
  EXPECT_EQ(checked({"--seed", "18446744073709551615"}).seed, UINT64_MAX);
  EXPECT_THAT(error_of({"--seed", "18446744073709551616"}), HasSubstr("from 0 to 2^64-1"));

  // Ethernet, IPv4, UDP and BTH have 14 + 20 + 8 + 12 bytes.
  EXPECT_EQ(checked({"--snap-length", "54"}).snap_length, 54u);
  EXPECT_EQ(checked({"--snap-length", "65535"}).snap_length, 65535u);
  EXPECT_THAT(error_of({"--snap-length", "53"}), HasSubstr("from 54 to 65535"));
  EXPECT_THAT(error_of({"--snap-length", "65536"}), HasSubstr("from 54 to 65535"));

  EXPECT_EQ(checked({"--capture", "f", "--capture-last", "1000000"}).capture_last, 1'000'000u);
  EXPECT_THAT(error_of({"--capture", "f", "--capture-last", "1000001"}), HasSubstr("1000000"));
  EXPECT_THAT(error_of({"--capture", "f", "--capture-last", "0"}), HasSubstr("from 1"));
}

TEST(CheckedOptions, TakeNoNumberWithAnythingBehindIt) {
  for (const char* text : {"", " 1", "1 ", "+1", "-1", "1.0", "0x1", "1e3", "one"})
    EXPECT_THAT(error_of({"--seed", text}), StartsWith("--seed '")) << text;
}

TEST(CheckedOptions, ReadASizeInBytesOrBinaryUnits) {
  const auto limit = [](const char* text) {
    return checked({"--record-limit", text}).record_limit;
  };
  EXPECT_EQ(limit("1"), 1u);
  EXPECT_EQ(limit("500k"), 500u * 1024);
  EXPECT_EQ(limit("100M"), 100u * 1024 * 1024);
  EXPECT_EQ(limit("2G"), 2u * 1024 * 1024 * 1024);
  EXPECT_EQ(limit("1073741824G"), uint64_t{1} << 60);
  for (const char* text : {"", "0", "k", "0k", "1K", "1T", "1kk", "-1", "1073741825G"})
    EXPECT_THAT(error_of({"--record-limit", text}), HasSubstr("is not a size")) << text;
}

TEST(CheckedOptions, AllowANameOf63LettersDigitsAndThreeSigns) {
  const std::string longest(63, 'n');
  EXPECT_EQ(checked({"--device", longest}).devices.at(0).name, longest);
  EXPECT_EQ(checked({"--device", "mlx5_0-a.b"}).devices.at(0).name, "mlx5_0-a.b");
  for (const std::string& name :
       {longest + "n", std::string(".a"), std::string("a b"), std::string()})
    EXPECT_THAT(error_of({"--device", name}), HasSubstr("a device's name must have")) << name;
}

TEST(CheckedOptions, AScheduleMayListTheStopsOfThreads) {
  using Stops = std::vector<std::pair<uint64_t, uint64_t>>;
  const auto schedule = [](const std::string& text) {
    return checked({"--lockstep", "--schedule", text}).schedule;
  };
  EXPECT_FALSE(schedule("7").has_stops);
  EXPECT_TRUE(schedule("7:").has_stops);
  EXPECT_EQ(schedule("0:3/17").stops, (Stops{{3, 17}}));
  EXPECT_EQ(schedule("5:3/17,2/4").number, 5u);
  EXPECT_EQ(schedule("5:3/17,2/4").stops, (Stops{{3, 17}, {2, 4}}));
  for (const char* const wrong : {"seven", ":1/2", "0:3", "0:3/", "0:/4", "0:3/4/5", "0:3/4,,1/2"})
    EXPECT_THAT(error_of({"--lockstep", "--schedule", wrong}), HasSubstr("N:THREAD/CALL")) << wrong;
}

TEST(CheckedOptions, AreOfLockstepOrOfTheRealClock) {
  EXPECT_EQ(checked({"--lockstep", "--schedule", "7"}).schedule.number, 7u);
  EXPECT_EQ(checked({"--lockstep"}).ack_coalescing, 1u);
  EXPECT_GT(checked({}).ack_coalescing, 1u);
  EXPECT_EQ(checked({"--lockstep", "--ack-coalescing", "2"}).ack_coalescing, 2u);
  EXPECT_THAT(error_of({"--schedule", "7"}), HasSubstr("needs --lockstep"));
  EXPECT_THAT(error_of({"--no-spin"}), HasSubstr("needs --lockstep"));
  EXPECT_THAT(error_of({"--busy-poll", "--lockstep"}), HasSubstr("leave out --busy-poll"));
}

TEST(CheckedOptions, AreRefusedWithoutTheOptionThatTheyAreAbout) {
  EXPECT_THAT(error_of({"--record-policy", "stop"}), HasSubstr("needs --record"));
  EXPECT_THAT(error_of({"--capture-last", "5"}), HasSubstr("needs --capture"));
  EXPECT_THAT(error_of({"--strict-icrc"}), HasSubstr("needs --udp"));
  EXPECT_TRUE(checked({"--record", "d", "--record-policy", "stop"}).stop_without_record);
  EXPECT_FALSE(checked({"--record", "d", "--record-policy", "continue"}).stop_without_record);
  EXPECT_THAT(error_of({"--record", "d", "--record-policy", "end"}), HasSubstr("neither"));
}

TEST(RemovedOptions, NameWhatToUseInstead) {
  for (const char* removed : {"--threads", "--clock", "--real-time-programs", "--tell-exits",
                              "--without-trace", "--sleep-between-turns"}) {
    const auto error = error_of_removed(removed);
    ASSERT_TRUE(error) << removed;
    EXPECT_THAT(*error, StartsWith("option '" + std::string(removed) + "' no longer exists; "));
  }
  EXPECT_THAT(*error_of_removed("--tell-exits"), HasSubstr("--report-failures"));
  EXPECT_FALSE(error_of_removed("--lockstep"));
  EXPECT_FALSE(error_of_removed("threads"));
}

}  // namespace
}  // namespace rocemu::options
