// The effects of rules: a row for each key of `do`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "emulator/scenario/rule_keys.h"

namespace rocemu::scenario {

/// How an effect treats its object, as far as that excludes other effects (consistency.cc).
enum class Manner : uint8_t {
  kBeside,   // rules out nothing
  kDrops,    // the object never arrives
  kMoves,    // it arrives at another time, or more often
  kChanges,  // it arrives changed
  kRejects,  // an answer comes instead
  kAlters,   // another completion or event comes
  kAnswers,  // the responder answers otherwise, or not at all
};

struct Effect {
  Key key;
  Manner manner;
  bool (*is_in)(const engine::faults::Effects& effects);
  /// What a log says that the rule does; null if another row says it.
  std::string (*words)(const engine::faults::Effects& effects);
  bool may_stand_alone;  // as in `do: drop`
  /// The JSON schema of its value.
  nlohmann::ordered_json (*value)(engine::faults::Where where);
};

std::span<const Effect> effect_table();

}  // namespace rocemu::scenario
