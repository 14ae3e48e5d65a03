// A fault of a simulated network (`on: network` in a scenario) as values: the part of the network
// that it concerns, and the change of that part. docs/scenarios.md describes it in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/engine/base/time.h"

namespace rocemu::engine {

/// A part of the network, by its name in the network file.
struct NetworkElement {
  enum class Kind : uint8_t {
    kLink,    // by its ends: "h3-s1"
    kPort,    // the link behind it: "s1:3"
    kSwitch,  // "s1"
    kHost,    // "h3"
  };
  Kind kind = Kind::kLink;
  std::string name;
};

/// A link that goes down and comes up again several times.
struct LinkFlap {
  Duration down{};
  Duration up{};  // between two times down
  uint32_t times = 1;
};

/// A NIC that pauses its switch.
struct PauseStorm {
  std::optional<uint8_t> priority;  // empty: all priorities that the network file calls lossless
};

/// The new thresholds of random early marking; with `is_off`, no packet is marked.
struct EcnChange {
  bool is_off = false;
  uint64_t kmin_bytes = 0;
  uint64_t kmax_bytes = 0;
  double pmax = 1;
};

/// The changes of a part of the network. Links, switches and hosts have different kinds of changes.
struct NetworkChange {
  // The following members change a link:
  bool is_down = false;
  std::optional<LinkFlap> flap;
  uint64_t bits_per_second = 0;  // 0: unchanged
  double corruption = 0;         // the probability that a frame arrives with a wrong FCS
  // The following members change a switch:
  std::optional<Duration> outage;  // it reboots, and its links are down for that long
  std::optional<EcnChange> ecn;
  // The following member changes a host's NIC:
  std::optional<PauseStorm> pause_storm;
};

}  // namespace rocemu::engine
