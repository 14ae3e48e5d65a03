// Describes the effects of a rule for a log.
#pragma once

#include <string>

#include "emulator/engine/faults/rule.h"

namespace rocemu::scenario {

/// Returns, for example, "drops" or "delays by 1.5 ms, raises PORT_ERR". The subject is the rule.
std::string in_words(const engine::faults::Effects& effects);

/// Returns, for example, "12 ns", "1.5 ms" or "3 s".
std::string in_words(engine::Duration time);

}  // namespace rocemu::scenario
