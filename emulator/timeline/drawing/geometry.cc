#include "emulator/timeline/drawing/geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "emulator/timeline/arrange.h"
#include "emulator/timeline/beside.h"
#include "emulator/timeline/drawing/ladder_layout.h"

namespace rocemu::timeline {
namespace {

constexpr size_t kLeastColumn = 30;    // characters
constexpr double kGutter = 24;         // beside a lane, where arrows fall
constexpr double kLost = kGutter / 2;  // from the receiver to where a frame is lost
constexpr double kGap = 4;             // between a gutter and a text
constexpr double kBesideLane = 12;     // to the right of the last lane, which has no gutter there
constexpr double kEdge = 4;
constexpr double kRowTop = 3;
constexpr double kShaft = 8;  // below a label
constexpr double kArrivalRow = kLineHeight;
constexpr size_t kReasonIndent = 2;

/// The contents of a row in the part of one run.
struct Cell {
  size_t happening = SIZE_MAX;
  size_t count = 0;  // of equal consecutive happenings; 0 for all but the first
  engine::Instant at{};
  bool has_time = false;
};

class Layout {
 public:
  Layout(const Timeline& timeline, size_t width)
      : timeline_(timeline), arrangement_(arrange(timeline)) {
    for (const Lane& lane : timeline.lanes) run_count_ = std::max<size_t>(run_count_, lane.run);
    lanes_of_run_.resize(run_count_);
    for (size_t lane = 0; lane < timeline.lanes.size(); ++lane) {
      slots_.push_back(lanes_of_run_[run_of(lane)].size());
      lanes_of_run_[run_of(lane)].push_back(lane);
    }
    find_cells();
    find_columns(width);
  }

  Geometry take() {
    place_heads();
    place_rows();
    place_happenings();
    place_notes();
    return std::move(out_);
  }

 private:
  size_t run_of(size_t lane) const { return std::max<size_t>(timeline_.lanes[lane].run, 1) - 1; }

  void find_cells() {
    cells_.assign(run_count_, std::vector<Cell>(arrangement_.rows));
    for_each_run_of_same([&](size_t first, size_t count) {
      for (size_t i = first; i < first + count; ++i) {
        const Happening& one = timeline_.happenings[i];
        const RowSpan& span = arrangement_.spans[i];
        const size_t run = run_of(one.lane);
        for (size_t each = 0; each < run_count_; ++each) {
          if (each == run || is_first_difference(one))
            cells_[each][span.row] = {i, i == first ? count : 0, one.at, true};
        }
        Cell& end = cells_[run][span.end];
        if (!end.has_time) end.at = arrival_of(one);
        end.has_time = true;
      }
    });
  }

  /// Calls `visit` once for each group of equal happenings that share a row, with the index of the
  /// group's first happening and the number of happenings.
  template <class Visit>
  void for_each_run_of_same(const Visit& visit) {
    size_t first = 0;
    for_each_group(timeline_, [&](const Happening&, size_t count) {
      visit(first, count);
      first += count;
    });
  }

  void find_columns(size_t width) {
    size_t longest = 4;
    for (const auto& cells : cells_) {
      for (const Cell& cell : cells)
        if (cell.has_time) longest = std::max(longest, time_text(cell).size());
    }
    time_width_ = static_cast<double>(longest + 2) * kCharacterWidth;
    size_t most = 1;
    for (const auto& lanes : lanes_of_run_) most = std::max(most, lanes.size());
    const double all = static_cast<double>(width) * kCharacterWidth;
    const double run_width = all / static_cast<double>(run_count_);
    column_ = std::max(static_cast<double>(kLeastColumn) * kCharacterWidth,
                       (run_width - time_width_ - kEdge) / static_cast<double>(most));
    run_left_.push_back(0);
    for (const auto& lanes : lanes_of_run_) {
      const auto count = static_cast<double>(std::max<size_t>(lanes.size(), 1));
      run_left_.push_back(run_left_.back() + time_width_ + count * column_ + kEdge);
    }
    out_.width = run_left_.back();
  }

  double x_of(size_t lane) const {
    return run_left_[run_of(lane)] + time_width_ + static_cast<double>(slots_[lane]) * column_;
  }

  static std::string time_text(const Cell& cell) {
    return duration_text(cell.at.time_since_epoch());
  }

  static Label label_at(double left, double top, std::vector<std::string> lines, Tone tone) {
    size_t longest = 0;
    for (const std::string& line : lines) longest = std::max(longest, line.size());
    const double bottom = top + static_cast<double>(lines.size()) * kLineHeight;
    return {{left, top, left + static_cast<double>(longest) * kCharacterWidth, bottom},
            std::move(lines),
            tone};
  }

  void place_heads() {
    for (size_t lane = 0; lane < timeline_.lanes.size(); ++lane) {
      out_.lifelines.push_back(x_of(lane));
      out_.heads.push_back(label_at(
          x_of(lane), 0, head_of(timeline_.lanes[lane], in_characters(column_)), Tone::kPlain));
      y_ = std::max(y_, out_.heads.back().box.bottom);
    }
    out_.lifelines_top = y_ += 6;
  }

  static size_t in_characters(double width) {
    return static_cast<size_t>(std::max(width / kCharacterWidth, 1.0));
  }

  /// Returns the left and right edge of the space for the text about a happening.
  std::pair<double, double> room_of(const Happening& one, size_t run) const {
    size_t slot = slots_[one.lane];
    if (is_arrow(one) && slots_[one.to] < slot) --slot;
    if (is_first_difference(one)) slot = 0;
    const double x = run_left_[run] + time_width_ + static_cast<double>(slot) * column_;
    if (slot + 1 >= lanes_of_run_[run].size()) return {x + kBesideLane, run_left_[run + 1] - kEdge};
    return {x + kGutter + kGap, x + column_ - kGutter - kGap};
  }

  struct Texts {
    std::vector<std::string> text, reason;
    double left = 0;
  };
  Texts texts_of(const Cell& cell, size_t run) const {
    const Happening& one = timeline_.happenings[cell.happening];
    const auto [left, right] = room_of(one, run);
    const size_t room = in_characters(right - left);
    std::string text = text_of_group(one, cell.count), reason = one.reason;
    if (one.to == one.lane) text = "to itself: " + text;
    if (is_first_difference(one)) {
      reason.clear();
      for (const auto& [field, first, second] : timeline_.differences)
        reason += (reason.empty() ? "" : "; ") + field + ": " + (run == 0 ? first : second);
    }
    Texts texts{wrap(text, room), {}, left};
    if (!reason.empty())
      texts.reason = wrap(reason, std::max<size_t>(room, kReasonIndent + 1) - kReasonIndent);
    return texts;
  }

  double height_of(const Cell& cell, size_t run) const {
    if (cell.happening == SIZE_MAX) return cell.has_time ? kArrivalRow : 0;
    if (cell.count == 0) return 0;
    const Texts texts = texts_of(cell, run);
    const double lines = static_cast<double>(texts.text.size() + texts.reason.size());
    return kRowTop + lines * kLineHeight +
           (is_arrow(timeline_.happenings[cell.happening]) ? kShaft : 0);
  }

  void place_rows() {
    std::vector<engine::Instant> last(run_count_, engine::Instant::min());
    for (uint32_t row = 0; row < arrangement_.rows; ++row) {
      double height = 0;
      for (size_t run = 0; run < run_count_; ++run) {
        const Cell& cell = cells_[run][row];
        height = std::max(height, height_of(cell, run));
        if (!cell.has_time || last[run] == cell.at) continue;
        last[run] = cell.at;
        const std::string time = time_text(cell);
        const double width = static_cast<double>(time.size()) * kCharacterWidth;
        const double right = run_left_[run] + time_width_ - kCharacterWidth;
        out_.times.push_back(label_at(right - width, y_ + text_top(cell), {time}, Tone::kPlain));
      }
      out_.rows.push_back({y_, y_ + height});
      y_ += height;
    }
    out_.lifelines_bottom = out_.height = y_ += 4;
  }

  static double text_top(const Cell& cell) { return cell.happening == SIZE_MAX ? 0 : kRowTop; }
  double middle_of(uint32_t row, size_t run) const {
    return out_.rows[row].top + text_top(cells_[run][row]) + kLineHeight / 2;
  }

  void place_happenings() {
    for (size_t run = 0; run < run_count_; ++run) {
      for (uint32_t row = 0; row < arrangement_.rows; ++row) {
        const Cell& cell = cells_[run][row];
        if (cell.happening != SIZE_MAX && cell.count > 0) place_cell(cell, row, run);
      }
    }
  }

  void place_cell(const Cell& cell, uint32_t row, size_t run) {
    const Happening& one = timeline_.happenings[cell.happening];
    Texts texts = texts_of(cell, run);
    out_.labels.push_back(
        label_at(texts.left, out_.rows[row].top + kRowTop, std::move(texts.text), one.tone));
    double below = out_.labels.back().box.bottom;
    if (is_arrow(one)) {
      place_arrow(cell.happening, below + kShaft / 2, run);
      below += kShaft;
    } else if (!is_first_difference(one)) {
      out_.dots.push_back({cell.happening, {x_of(one.lane), middle_of(row, run)}, one.tone});
    }
    if (texts.reason.empty()) return;
    const double indent = static_cast<double>(kReasonIndent) * kCharacterWidth;
    out_.labels.push_back(label_at(texts.left + indent, below, std::move(texts.reason), one.tone));
  }

  void place_arrow(size_t happening, double shaft, size_t run) {
    const Happening& one = timeline_.happenings[happening];
    const RowSpan& span = arrangement_.spans[happening];
    const double from = x_of(one.lane), to = x_of(one.to);
    const double way = to > from ? 1 : -1;
    const double bend = to - way * kGutter;
    Arrow& arrow = out_.arrows.emplace_back(Arrow{happening, {{from, shaft}}, one.tone, one.lost});
    if (one.lost) {
      arrow.points.push_back({to - way * kLost, shaft});
    } else if (span.end == span.row) {
      arrow.points.push_back({to, shaft});
    } else {
      arrow.points.push_back({bend, shaft});
      arrow.points.push_back({to, middle_of(span.end, run)});
    }
  }

  void place_notes() {
    for (const std::string& note : timeline_.notes) {
      out_.notes.push_back(label_at(kEdge, out_.height,
                                    wrap("note: " + note, in_characters(out_.width - 2 * kEdge)),
                                    Tone::kPlain));
      out_.height = out_.notes.back().box.bottom;
    }
    out_.height += 4;
  }

  const Timeline& timeline_;
  const Arrangement arrangement_;
  size_t run_count_ = 1;
  std::vector<std::vector<size_t>> lanes_of_run_;
  std::vector<size_t> slots_;             // of each lane, its index among the lanes of its run
  std::vector<std::vector<Cell>> cells_;  // by run and row
  std::vector<double> run_left_;          // and the right edge of the last lane
  double time_width_ = 0, column_ = 0, y_ = 0;
  Geometry out_;
};

}  // namespace

Geometry lay_out(const Timeline& timeline, size_t width) {
  return Layout(timeline, width).take();
}

}  // namespace rocemu::timeline
