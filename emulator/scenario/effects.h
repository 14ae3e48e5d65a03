// The table of the effects of rules, with a row for each key of `do`
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "emulator/scenario/rule_keys.h"

namespace rocemu::scenario {

/// The kind of change that an effect makes to its object, such as a frame or a completion. This
/// determines which effects exclude each other (consistency.cc).
enum class Manner : uint8_t {
  kBeside,   // excludes nothing
  kDrops,    // the object never arrives
  kMoves,    // it arrives at another time, or more often
  kChanges,  // it arrives changed
  kRejects,  // an answer arrives instead
  kAlters,   // another completion or event arrives
  kAnswers,  // the responder answers differently, or not at all
};

struct Effect {
  Key key;
  Manner manner;
  bool (*is_in)(const engine::faults::Effects& effects);
  /// Returns the words for the effect in a log. The pointer is null if another row's words describe
  /// the effect.
  std::string (*words)(const engine::faults::Effects& effects);
  bool may_stand_alone;  // as in `do: drop`
  /// Returns the JSON schema of the effect's value.
  nlohmann::ordered_json (*value)(engine::faults::Where where);
};

std::span<const Effect> effect_table();

}  // namespace rocemu::scenario
