// Helpers for tests of rules. The rules are written in the language of a scenario
// (docs/scenarios.md).
#pragma once

#include <string>
#include <variant>

#include "emulator/scenario/scenario.h"
#include "tests/support/script.h"

namespace rocemu::test {

/// The local ACK timeout of a Script's QP.
inline constexpr engine::Duration kAckTimeout = ack_timeout(14);

inline void add_rules(Bench& bench, const std::string& text) {
  bench.step(engine::AddRules{scenario::parse_rule(text)});
}

inline Expected fired() {
  return Expected("a rule that acts", [](const engine::Output& output) {
    return std::holds_alternative<engine::RuleFired>(output) ? "" : "it is something else";
  });
}

}  // namespace rocemu::test
