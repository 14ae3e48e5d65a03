#include "emulator/journal/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rocemu::journal {
namespace {

using testing::HasSubstr;

Header some_header() {
  Header header;
  header.clock = "lockstep";
  header.wall_start_ns = 1'700'000'000'123'456'789;
  header.fabric = engine::default_fabric(3);
  header.fabric.seed = 0xffff'ffff'ffff'fff0;
  header.fabric.trace_frames = true;
  header.fabric.ack_coalescing = 3;
  header.fabric.same_keys = true;
  header.fabric.adversarial = 0b100001;
  header.fabric.devices[1].policy.require_grh = true;
  header.fabric.devices[1].policy.resolve_neighbors = true;
  header.fabric.devices[1].interfaces = {1, 7};
  header.fabric.devices[2].active_mtu = abi::Mtu::k1024;
  return header;
}

TEST(JournalHeader, IsReadAsItWasWritten) {
  const Header before = some_header();
  const Header after = parse_header(to_json(before));
  EXPECT_EQ(to_json(after), to_json(before));
  EXPECT_EQ(after.fabric.ack_coalescing, 3u);
  EXPECT_TRUE(after.fabric.same_keys);
  EXPECT_EQ(after.fabric.adversarial, 0b100001u);
  EXPECT_EQ(after.fabric.seed, before.fabric.seed);
  EXPECT_EQ(after.fabric.devices[2].addresses, before.fabric.devices[2].addresses);
  EXPECT_EQ(after.fabric.devices[2].mac.bytes, before.fabric.devices[2].mac.bytes);
  EXPECT_TRUE(after.fabric.devices[1].policy.require_grh);
  EXPECT_TRUE(after.fabric.devices[1].policy.resolve_neighbors);
  EXPECT_FALSE(after.fabric.devices[0].policy.resolve_neighbors);
  EXPECT_EQ(after.fabric.devices[1].interfaces, (std::vector<uint32_t>{1, 7}));
}

// Older recordings were made by an engine that did not resolve neighbors and accepted any scope.
// Their headers lack both fields.
TEST(JournalHeader, OfAnOlderRecordingHasNeitherInterfacesNorNeighbors) {
  auto json = nlohmann::json::parse(to_json(some_header()));
  json["devices"][1].erase("resolve_neighbors");
  json["devices"][1].erase("interfaces");
  const Header older = parse_header(json.dump());
  EXPECT_FALSE(older.fabric.devices[1].policy.resolve_neighbors);
  EXPECT_TRUE(older.fabric.devices[1].interfaces.empty());
}

TEST(JournalHeader, NamesTheFieldThatIsMissingOrOfTheWrongKind) {
  const auto whole = nlohmann::json::parse(to_json(some_header()));
  for (const auto& [key, value] : whole.items()) {
    for (const nlohmann::json& wrong : {nlohmann::json(), nlohmann::json("a"), nlohmann::json(7)}) {
      if (wrong.type() == value.type() || (wrong.is_number() && value.is_number())) continue;
      nlohmann::json changed = whole;
      changed[key] = wrong;
      try {
        parse_header(changed.dump());
        ADD_FAILURE() << key << " = " << wrong;
      } catch (const std::runtime_error& error) {
        EXPECT_THAT(error.what(), HasSubstr("its header ")) << key << " = " << wrong;
      }
    }
  }
  for (const int number : {0, 17}) {
    nlohmann::json changed = whole;
    changed["ack_coalescing"] = number;
    EXPECT_THROW(parse_header(changed.dump()), std::runtime_error) << number;
  }
  EXPECT_THROW(parse_header("{"), std::runtime_error);
  EXPECT_THROW(parse_header("[]"), std::runtime_error);
}

}  // namespace
}  // namespace rocemu::journal
