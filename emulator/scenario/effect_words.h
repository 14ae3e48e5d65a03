// Describes the effects of a rule for a log.
#pragma once

#include <string>

#include "emulator/engine/faults/rule.h"

namespace rocemu::scenario {

/// "drops", "delays by 1.5 ms, raises PORT_ERR": with the rule as the subject.
std::string in_words(const engine::faults::Effects& effects);

/// "12 ns", "1.5 ms", "3 s".
std::string in_words(engine::Duration time);

}  // namespace rocemu::scenario
