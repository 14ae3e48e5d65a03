// The class `placement` at the responder of a READ, whose data is read in pieces of 8 bytes at two
// different times. IBTA vol 1, 9.5 promises no order in which the bytes of a READ are read. If a
// program changes the bytes between these times, the requester gets a mixture.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "emulator/engine/adversarial/choices.h"
#include "emulator/engine/adversarial/draw.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/time.h"

namespace rocemu::engine::adversarial {

class TornRead {
 public:
  TornRead(uint64_t seed, Choices& choices) : draw_(seed, Class::kPlacement), choices_(choices) {}

  /// The READ response packets that are sent in one quantum
  struct Burst {
    QpNumber qp;
    uint32_t generation;  // QueuePair::generation
    uint32_t psn;         // of the first packet
    uint64_t address;     // of its data
    bool operator==(const Burst&) const = default;
  };

  /// Takes the burst's data, which was just read from memory. If the packets can be sent, replaces
  /// some words of the data with those of an earlier read, and returns `now`. Otherwise returns the
  /// time at which the data must be read again.
  Instant take(const Burst& burst, std::span<const std::span<uint8_t>> data, Instant now);
  /// Returns the time at which the data must be read again, or `now` if there is no wait.
  Instant again_at(const Burst& burst, Instant now) const;

 private:
  struct Waiting {
    Burst burst;
    Instant until;
    std::vector<uint8_t> first;  // contents of the first read
    uint32_t shape = 0;          // selects the words of the first read
    uint64_t salt = 0, border = 0;
  };
  static void mix(const Waiting& waiting, std::span<const std::span<uint8_t>> data);

  Draw draw_;
  Choices& choices_;
  std::map<QpNumber, Waiting> waiting_;
};

}  // namespace rocemu::engine::adversarial
