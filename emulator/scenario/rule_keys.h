// The keys of a rule: one table for what it picks and when it acts, one for what it does.
#pragma once

#include <set>
#include <string>
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
  void (*read)(Reading reading, const Node& value);
};

/// Of a rule, beside on, name and do.
std::span<const Key> selection_keys();
/// Of `do`.
std::span<const Key> effect_keys();

/// Reads a mapping's values by the keys of that place, and complains of those that are not one of
/// them. `seen` has the keys that were read before for the same thing, and then these too.
void read_keys(Reading reading, const Node& mapping, std::span<const Key> keys,
               std::span<const std::string_view> others, std::set<std::string>& seen);

/// One name of a key alone: `do: drop`.
void read_flag(Reading reading, const Node& word, std::set<std::string>& seen);

/// What cannot be had together, and what is probably not meant. For a rule without mistakes.
void check_consistency(Reading reading, const Node& effects);

}  // namespace rocemu::scenario
