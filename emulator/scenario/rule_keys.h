// The keys of a rule: one table for what it picks and when it acts, one for what it does.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string_view>
#include <vector>

#include "emulator/engine/faults/rule.h"
#include "emulator/scenario/node_reader.h"

namespace rocemu::scenario {

/// A set of places, by Where.
using Places = uint32_t;
constexpr Places at(engine::faults::Where where) {
  return 1u << static_cast<uint32_t>(where);
}

/// What is being read: the values of some keys depend on where the rule looks.
struct Reading {
  const NodeReader& reader;
  engine::faults::Rule& rule;
};

struct Key {
  std::string_view name;
  Places places;
  void (*read)(Reading reading, const YAML::Node& value);
};

/// Of a rule, beside on, name and do.
std::span<const Key> selection_keys();
/// Of `do`.
std::span<const Key> effect_keys();

/// Reads a mapping's values by the keys of that place. Throws ScenarioError for a key that is not
/// one of them, or is there twice.
void read_keys(Reading reading, const YAML::Node& mapping, std::span<const Key> keys,
               std::span<const std::string_view> others);

/// One name of a key alone: `do: drop`.
void read_flag(Reading reading, const YAML::Node& word);

}  // namespace rocemu::scenario
