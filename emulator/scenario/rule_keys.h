// The keys of a rule, and the functions that read their values. There are two tables: one has the
// keys that select occurrences and determine when the rule acts, and the other has the keys of its
// effects.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/engine/faults/rule.h"
#include "emulator/scenario/node_reader.h"

namespace rocemu::scenario {

/// A set of places, with a bit for each value of Where.
using Places = uint32_t;
constexpr Places at(engine::faults::Where where) {
  return 1u << static_cast<uint32_t>(where);
}
inline constexpr Places kOnFrames =
    at(engine::faults::Where::kFrame) | at(engine::faults::Where::kCm);
inline constexpr Places kOnWire = kOnFrames | at(engine::faults::Where::kLink);
/// All places except the simulated network, where a rule changes only the network itself.
inline constexpr Places kEverywhere =
    ((1u << engine::faults::kPlaces) - 1) & ~at(engine::faults::Where::kNetwork);

// The maximum values of numbers in rules
inline constexpr uint64_t kAny = UINT64_MAX;
inline constexpr uint64_t kMax24 = 0xffffff;
inline constexpr uint64_t kMaxPayload = 4096;  // the largest path MTU

/// The reader, and the rule that is being read: how a key is read may depend on the rule's place.
struct Reading {
  const NodeReader& reader;
  engine::faults::Rule& rule;
};

struct Key {
  std::string_view name;
  Places places;
  void (*read)(Reading reading, const Node& value);
};

/// Returns all keys of a rule except `on`, `name` and `do` (selection_keys.cc).
std::span<const Key> selection_keys();
/// Returns the keys of `do` (effects.cc).
std::span<const Key> effect_keys();

/// Reads a time that is not 0.
engine::Duration read_time(Reading reading, const Node& value);

/// Reads the values of a mapping. Reports keys that are neither in `keys` nor in `others`, or that
/// do not exist for the rule's place; `others` are skipped. Reports keys that are already in
/// `seen`, and adds the new ones to it.
void read_keys(Reading reading, const Node& mapping, std::span<const Key> keys,
               std::span<const std::string_view> others, std::set<std::string>& seen);

/// Reads a key of `do` without a value, as in `do: drop`.
void read_flag(Reading reading, const Node& word, std::set<std::string>& seen);

/// Reports effects that exclude each other, and effects that are probably not intended. The rule
/// must have no other mistakes.
void check_consistency(Reading reading, const Node& effects);

/// Reports invalid combinations of effects in rules with `on: network`.
void check_network_rule(Reading reading, const Node& effects);

}  // namespace rocemu::scenario
