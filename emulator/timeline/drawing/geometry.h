// Computes the positions, in pixels, of the lines, arrows and texts in a picture of a timeline. The
// rows are those of arrange.h. An arrow is level below its label; in the gutter before its
// receiver, it falls to the row of its arrival. No label is in a gutter, so no arrow crosses a
// label. (page/layout.js does the same for the width of a screen, and with folds.)
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "emulator/timeline/model.h"

namespace rocemu::timeline {

inline constexpr double kCharacterWidth = 7.8;  // of a monospaced font of 13 pixels
inline constexpr double kLineHeight = 18;
inline constexpr double kCross = 5;  // half the width of the cross where a frame is lost

struct Point {
  double x = 0, y = 0;
};

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};

/// A text in one or more lines. The baseline of the first line is `kBaseline` below the box's upper
/// edge.
struct Label {
  Box box;
  std::vector<std::string> lines;
  Tone tone = Tone::kPlain;
};
inline constexpr double kBaseline = 14;

struct Arrow {
  size_t happening = 0;
  std::vector<Point> points;  // of a lost frame: up to the place where it is lost
  Tone tone = Tone::kPlain;
  bool lost = false;
};

/// The dot of a happening that is not an arrow.
struct Dot {
  size_t happening = 0;
  Point at;
  Tone tone = Tone::kPlain;
};

struct Row {
  double top = 0, bottom = 0;
};

struct Geometry {
  double width = 0, height = 0;
  std::vector<Label> heads, times, labels, notes;
  std::vector<double> lifelines;  // x, by lane
  double lifelines_top = 0, lifelines_bottom = 0;
  std::vector<Row> rows;
  std::vector<Arrow> arrows;
  std::vector<Dot> dots;
};

/// Computes the positions of all parts of the picture. `width` is in characters. The picture
/// becomes wider if columns would be too narrow for their texts.
Geometry lay_out(const Timeline& timeline, size_t width);

}  // namespace rocemu::timeline
