// Which row everything has that happens, from top to bottom, and where arrows end: the vertical
// half of a picture's layout, which the page and the SVG share. It knows no pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

/// The row of a happening, and that in which its arrow ends: the first row of the time at which the
/// frame arrives. Without an arrow, or if the frame is lost, `end` is `row`.
struct Place {
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
  std::vector<Place> places;  // by happening
  std::vector<Fold> folds;
};

/// Fewer rows of set-up than this stay as they are.
inline constexpr uint32_t kLeastFold = 3;

/// Gives each happening a row of its own. A time at which something only arrives gets a row, too.
/// Two runs share rows: up to their first difference what is the same is in the same row.
Arrangement arrange(const Timeline& timeline);

/// Whether a happening is drawn as an arrow from one lane to another.
bool is_arrow(const Happening& one);

/// When a frame that is not lost reaches its receiver.
engine::Instant arrival_of(const Happening& one);

}  // namespace rocemu::timeline
