// The class `placement`: the order in which the bytes of one message reach memory, and their delay.
//
// IBTA vol 1, 9.5 and o9-20: a program shall not depend on the order in which the bytes of one
// message are written, nor on the contents of a buffer before the completion, or a later SEND,
// WRITE with immediate data or atomic of the same QP. ibv_query_qp_data_in_order(3) returns 0.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "emulator/engine/adversarial/draw.h"
#include "emulator/engine/base/time.h"

namespace rocemu::engine::adversarial {

/// A plan for one message. The message is split into pieces where addresses are multiples of the
/// granule, so that no aligned word of 8 bytes is torn. Each piece belongs to one wave, and the
/// pieces of a wave are written at the same time.
struct PlacementPlan {
  enum class Shape : uint8_t {
    kTogether,   // one wave
    kLastFirst,  // the last piece, then all others
    kBackward,   // thirds, the last one first
    kScattered,  // each piece in any of three waves
  };
  static constexpr uint32_t kMaxWaves = 3;

  Shape shape = Shape::kTogether;
  uint32_t granule = 8;
  uint64_t salt = 0;
  Duration delay{0};  // of the last wave

  uint32_t waves() const {
    switch (shape) {
      case Shape::kTogether:
        return 1;
      case Shape::kLastFirst:
        return 2;
      case Shape::kBackward:
      case Shape::kScattered:
        return kMaxWaves;
    }
    return 1;
  }
  /// Returns how long after the message's arrival the wave is written. The last wave, which can be
  /// the only one, is written after the whole delay.
  Duration delay_of(uint32_t wave) const {
    const uint32_t count = waves();
    return count == 1 ? delay : delay * wave / (count - 1);
  }
  /// Returns the wave of piece `index` of `count`.
  uint32_t wave_of(uint64_t index, uint64_t count) const;
};

/// Returns the effect of a plan on a message, as the end of a sentence that begins with the
/// message's name: "has its last 8 bytes 10 us before the others".
std::string in_words(const PlacementPlan& plan);

/// Draws a plan. One message in eight is written whole and at once, as real NICs do.
PlacementPlan draw_placement(Draw& draw);

}  // namespace rocemu::engine::adversarial
