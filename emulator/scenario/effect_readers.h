// Reads the values of effects that need more than reading a number, a time or a name.
#pragma once

#include "emulator/scenario/rule_keys.h"

namespace rocemu::scenario {

void read_corrupt(Reading reading, const Node& value);
void read_rewrite(Reading reading, const Node& value);
void read_inject(Reading reading, const Node& value);
void read_reject(Reading reading, const Node& value);
void read_rnr(Reading reading, const Node& value);
void read_nak(Reading reading, const Node& value);
void read_status(Reading reading, const Node& value);
void read_event(Reading reading, const Node& value);
void read_errno(Reading reading, const Node& value);
void read_port(Reading reading, const Node& value);
void read_gid(Reading reading, const Node& value);

/// The maximum of `times` in the effect `flap`.
inline constexpr uint32_t kMostFlaps = 1'000'000;

void read_bandwidth(Reading reading, const Node& value);
void read_down(Reading reading, const Node& value);
void read_flap(Reading reading, const Node& value);
void read_ecn(Reading reading, const Node& value);
void read_pause_storm(Reading reading, const Node& value);

}  // namespace rocemu::scenario
