// Describes the effects of a rule in words, for logs.
#pragma once

#include <string>

#include "emulator/engine/faults/rule.h"

namespace rocemu::scenario {

/// Returns a predicate for the subject "the rule", such as "drops" or "delays by 1.5 ms, raises
/// PORT_ERR".
std::string in_words(const engine::faults::Effects& effects);

/// Returns the time in a suitable unit, such as "12 ns", "1.5 ms" or "3 s".
std::string in_words(engine::Duration time);

}  // namespace rocemu::scenario
