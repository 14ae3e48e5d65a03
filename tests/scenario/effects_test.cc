// Tests each row of the table of effects: a rule with the effect, and the places for which the
// effect is refused.
#include "emulator/scenario/effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "emulator/scenario/effect_words.h"
#include "emulator/scenario/scenario.h"

namespace rocemu::scenario {
namespace {

using namespace std::chrono_literals;
using engine::faults::Effects;
using engine::faults::Where;
using testing::HasSubstr;

/// The names of the places in scenarios, in the order of Where.
constexpr std::array<const char*, engine::faults::kPlaces> kPlaceNames = {
    "frame", "link",     "cm",   "work_request", "request", "completion",
    "event", "cm_event", "verb", "now",          "network"};

struct Sample {
  const char* on;     // a place where the effect is allowed, and what the rule selects there
  const char* value;  // a value for its key
  const char* more;   // further keys that a rule with this effect needs
  const char* with;   // keys that then are effects of the same rule, too
};

/// A rule for each key of `do`. A new effect needs a rule here, too.
const std::map<std::string, Sample> kSamples = {
    {"drop", {"frame", "true", "", "partition"}},
    {"delay", {"frame", "1ms", "", ""}},
    {"jitter", {"frame", "1ms", "", ""}},
    {"log", {"frame", "true", "", ""}},
    {"duplicate", {"frame", "2", "", ""}},
    {"reorder", {"frame", "3", "", ""}},
    {"corrupt", {"frame", "icrc", "", ""}},
    {"rewrite", {"frame", "{psn: 7}", "", ""}},
    {"inject", {"frame", "{to: sender, opcode: ACK}", "", ""}},
    {"reject", {"cm", "CONSUMER", "", ""}},
    {"latency", {"link", "10us", "", ""}},
    {"bandwidth", {"link", "10Gbit/s", "", ""}},
    {"loss", {"link", "0.5", "", ""}},
    {"partition", {"link", "true", "", "drop"}},
    {"rnr", {"request", "true", "", ""}},
    {"nak", {"request", "remote_access_error", "", ""}},
    {"silent", {"request", "true", "", ""}},
    {"status", {"work_request", "REM_OP_ERR", "", ""}},
    {"vendor_err", {"work_request", "7", ", status: REM_OP_ERR", "status"}},
    {"hold", {"completion", "4", "", ""}},
    {"overrun", {"completion", "true", "", ""}},
    {"event", {"event, event: QP_FATAL", "QP_ACCESS_ERR", "", ""}},
    {"errno", {"verb", "ENOMEM", "", ""}},
    {"raise", {"frame", "PORT_ERR", "", ""}},
    {"raise_cm", {"cm_event", "DISCONNECTED", "", ""}},
    {"port", {"frame", "down", "", ""}},
    {"gid", {"frame", "{index: 1, address: 10.9.9.9}", "", ""}},
    {"remove_device", {"frame", "true", "", ""}},
    {"pause", {"frame", "true", "", ""}},
    {"kill", {"frame", "true", "", ""}},
    {"down", {"network, link: h0-s1", "true", "", ""}},
    {"flap", {"network, link: h0-s1", "{down: 1ms, up: 2ms, times: 3}", "", ""}},
    {"corruption", {"network, port: 's1:0'", "1%", "", ""}},
    {"reboot", {"network, switch: s1", "1ms", "", ""}},
    {"ecn", {"network, switch: s1", "{kmin: 1KiB, kmax: 2KiB, pmax: 0.5}", "", ""}},
    {"pause_storm", {"network, host: h0", "3", "", ""}},
};

std::string rule_with(const std::string& key, const char* on, const Sample& sample) {
  return "{on: " + std::string(on) + ", do: {" + key + ": " + sample.value + sample.more + "}}";
}

TEST(EffectTable, HasOneRowForEachKeyAndASampleHere) {
  std::set<std::string_view> keys;
  for (const Effect& effect : effect_table()) {
    EXPECT_TRUE(keys.insert(effect.key.name).second) << effect.key.name;
    EXPECT_TRUE(kSamples.contains(std::string(effect.key.name))) << effect.key.name;
  }
  EXPECT_EQ(keys.size(), kSamples.size());
}

TEST(EffectTable, FindsTheEffectInItsRuleAndNoOther) {
  for (const auto& [key, sample] : kSamples) {
    const Effects effects = parse_rule(rule_with(key, sample.on, sample))->rules.at(0).effects;
    for (const Effect& effect : effect_table()) {
      const std::string name(effect.key.name);
      EXPECT_EQ(effect.is_in(effects), name == key || name == sample.with) << name << " of " << key;
      EXPECT_FALSE(effect.is_in(Effects{})) << name;
    }
  }
}

TEST(EffectTable, RefusesAnEffectWhereItIsNotFor) {
  for (const Effect& effect : effect_table()) {
    const std::string key(effect.key.name);
    for (size_t i = 0; i < kPlaceNames.size(); ++i) {
      if ((effect.key.places & at(static_cast<Where>(i))) != 0) continue;
      try {
        parse_rule(rule_with(key, kPlaceNames[i], kSamples.at(key)));
        ADD_FAILURE() << key << " for " << kPlaceNames[i];
      } catch (const ScenarioError& error) {
        EXPECT_THAT(error.what(),
                    HasSubstr("'" + key + "' cannot be used with 'on: " + kPlaceNames[i] + "'"));
      }
    }
  }
}

TEST(EffectTable, HasASchemaOfEachValueInEachPlace) {
  for (const Effect& effect : effect_table()) {
    for (size_t i = 0; i < kPlaceNames.size(); ++i) {
      const Where where = static_cast<Where>(i);
      if ((effect.key.places & at(where)) == 0) continue;
      const auto schema = effect.value(where);
      EXPECT_TRUE(schema.is_object() && !schema.empty()) << effect.key.name << kPlaceNames[i];
    }
  }
}

TEST(EffectWords, SayAllThatARuleDoesAndNothingTwice) {
  Effects effects;
  effects.drop = true;
  EXPECT_EQ(in_words(effects), "drops");
  effects = {};
  effects.delay = 1500us;
  effects.raise = abi::EventType::kPortErr;
  EXPECT_EQ(in_words(effects), "delays by 1.5 ms, raises PORT_ERR");
}

TEST(EffectWords, HaveTheLargestUnitOfATime) {
  EXPECT_EQ(in_words(engine::Duration(12ns)), "12 ns");
  EXPECT_EQ(in_words(engine::Duration(999ns)), "999 ns");
  EXPECT_EQ(in_words(engine::Duration(1us)), "1 us");
  EXPECT_EQ(in_words(engine::Duration(1500us)), "1.5 ms");
  EXPECT_EQ(in_words(engine::Duration(3s)), "3 s");
}

}  // namespace
}  // namespace rocemu::scenario
