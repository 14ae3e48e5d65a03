// The keys of a rule: one table for what it picks and when it acts, one for what it does; and how
// they are read.
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
inline constexpr Places kOnFrames =
    at(engine::faults::Where::kFrame) | at(engine::faults::Where::kCm);
inline constexpr Places kOnWire = kOnFrames | at(engine::faults::Where::kLink);
inline constexpr Places kEverywhere = (1u << engine::faults::kPlaces) - 1;

// Limits of values.
inline constexpr uint64_t kAny = UINT64_MAX;
inline constexpr uint64_t kMax24 = 0xffffff;
inline constexpr uint64_t kMaxPayload = 4096;  // the largest path MTU

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

/// Returns the keys of a rule besides on, name and do (selection_keys.cc).
std::span<const Key> selection_keys();
/// Returns the keys of `do` (effects.cc).
std::span<const Key> effect_keys();

/// A time that makes a difference.
engine::Duration read_time(Reading reading, const Node& value);

/// Reads a mapping's values by the keys of that place, and complains of those that are not one of
/// them. `seen` has the keys that were read before for the same thing, and then these too.
void read_keys(Reading reading, const Node& mapping, std::span<const Key> keys,
               std::span<const std::string_view> others, std::set<std::string>& seen);

/// One name of a key alone: `do: drop`.
void read_flag(Reading reading, const Node& word, std::set<std::string>& seen);

/// What cannot be had together, and what is probably not meant. For a rule without mistakes.
void check_consistency(Reading reading, const Node& effects);

}  // namespace rocemu::scenario
