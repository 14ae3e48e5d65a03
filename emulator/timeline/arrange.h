// Gives each happening a row, from top to bottom, and each arrow its end. This is the vertical half
// of a picture's layout, which the page and the SVG share. It does not use pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// The row of a happening, and the row in which its arrow ends: the first row at the time at which
/// the frame arrives. Without an arrow, or if the frame is lost, `end` is `row`.
struct RowSpan {
  uint32_t row = 0;
  uint32_t end = 0;
};

/// Consecutive rows of set-up, which a page shows as one until it is opened.
struct Fold {
  uint32_t first = 0;
  uint32_t last = 0;
};

struct Arrangement {
  uint32_t rows = 0;
  std::vector<RowSpan> spans;  // by happening
  std::vector<Fold> folds;
};

/// The minimum number of rows of set-up that fold
inline constexpr uint32_t kLeastFold = 3;

/// Gives each event a separate row. A time at which something only arrives also gets a row. Two
/// runs share rows: up to their first difference equal events are in the same row.
Arrangement arrange(const Timeline& timeline);

/// Returns whether a happening is drawn as an arrow from one lane to another.
bool is_arrow(const Happening& one);

/// Returns when a frame that is not lost reaches its receiver.
engine::Instant arrival_of(const Happening& one);

}  // namespace rocemu::timeline
