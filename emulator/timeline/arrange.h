// Assigns a row to each happening, from top to bottom, and to the end of each arrow. This is the
// vertical part of a picture's layout, without pixels. The page and the SVG share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// The row of a happening, and the row in which its arrow ends: the first row at the time at which
/// the frame arrives. If there is no arrow, or the frame is lost, `end` is equal to `row`.
struct RowSpan {
  uint32_t row = 0;
  uint32_t end = 0;
};

/// Consecutive rows of set-up. A page shows them as one row until the user opens them.
struct Fold {
  uint32_t first = 0;
  uint32_t last = 0;
};

struct Arrangement {
  uint32_t rows = 0;
  std::vector<RowSpan> spans;  // by happening
  std::vector<Fold> folds;
};

/// The minimum number of consecutive rows of set-up that fold
inline constexpr uint32_t kLeastFold = 3;

/// Assigns a separate row to each event, and to each time at which frames only arrive. If there are
/// two runs, equal events share a row until the first difference between the runs.
Arrangement arrange(const Timeline& timeline);

/// Returns whether the happening is drawn as an arrow from one lane to another.
bool is_arrow(const Happening& one);

/// Returns when a frame reaches its receiver. The frame must not be lost.
engine::Instant arrival_of(const Happening& one);

}  // namespace rocemu::timeline
