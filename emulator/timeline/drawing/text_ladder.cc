#include "emulator/timeline/drawing/text_ladder.h"

#include <fmt/format.h>

#include <algorithm>

#include "emulator/timeline/drawing/ladder_layout.h"

namespace rocemu::timeline {
namespace {

constexpr size_t kTimeWidth = 12;
constexpr size_t kLeastTextColumn = 30;

/// A line of character cells, each of which has a color.
class TextRow {
 public:
  explicit TextRow(size_t width) : cells_(width, {U' ', ""}) {}

  void put(size_t at, char32_t c, const char* color) {
    if (at >= cells_.size()) cells_.resize(at + 1, {U' ', ""});
    cells_[at] = {c, color};
  }
  void put(size_t at, const std::string& text, const char* color) {
    for (const char c : text) put(at++, static_cast<unsigned char>(c), color);
  }
  std::string text(bool with_color) const {
    size_t end = cells_.size();
    while (end > 0 && cells_[end - 1].c == U' ') --end;
    std::string line;
    const char* current = "";
    for (size_t i = 0; i < end; ++i) {
      const Cell& cell = cells_[i];
      if (with_color && cell.c != U' ' && cell.color != current) {
        line += *cell.color == 0 ? "\033[0m" : cell.color;
        current = cell.color;
      }
      append(cell.c, line);
    }
    if (*current != 0) line += "\033[0m";
    return line;
  }

 private:
  struct Cell {
    char32_t c;
    const char* color;
  };
  static void append(char32_t c, std::string& line) {
    if (c < 0x80) {
      line += static_cast<char>(c);
    } else {
      line += static_cast<char>(0xe0 | (c >> 12));
      line += static_cast<char>(0x80 | ((c >> 6) & 0x3f));
      line += static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  std::vector<Cell> cells_;
};

const char* color_of(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "";
    case Tone::kAgain:
      return "\033[33m";
    case Tone::kFault:
      return "\033[35m";
    case Tone::kError:
      return "\033[31m";
  }
  return "";
}

class Ladder {
 public:
  Ladder(const Timeline& timeline, const TextOptions& options, std::ostream& out)
      : timeline_(timeline), options_(options), out_(out) {
    const size_t lanes = std::max<size_t>(timeline.lanes.size(), 1);
    const size_t room = options.width > kTimeWidth ? options.width - kTimeWidth : 0;
    column_ = std::max(kLeastTextColumn, room / lanes);
  }

  void write_head() {
    std::vector<std::vector<std::string>> heads;
    size_t rows = 0;
    for (const Lane& lane : timeline_.lanes) {
      heads.push_back(head_of(lane, column_ - 2));
      rows = std::max(rows, heads.back().size());
    }
    for (size_t row = 0; row < rows; ++row) {
      TextRow line(0);
      for (size_t lane = 0; lane < heads.size(); ++lane) {
        if (row < heads[lane].size()) line.put(place(lane), heads[lane][row], "\033[1m");
      }
      print(line);
    }
  }

  void write(const Happening& one, size_t count) {
    std::string time;
    if (!last_ || *last_ != one.at) time = duration_text(one.at.time_since_epoch());
    last_ = one.at;
    const char* color = color_of(one.tone);
    const std::string text = text_of_group(one, count);
    if (one.to != kNoLane && one.to != one.lane) {
      write_arrow(one, time, text, color);
    } else {
      write_here(one.lane, time, one.to == one.lane ? "to itself: " + text : text, color);
    }
    if (!one.reason.empty()) write_here(one.lane, "", "  " + one.reason, color);
  }

  void write_notes() {
    for (const std::string& note : timeline_.notes) out_ << "note: " << note << "\n";
  }

 private:
  size_t place(size_t lane) const { return kTimeWidth + lane * column_; }

  TextRow lifelines(const std::string& time) const {
    TextRow row(0);
    if (time.size() < kTimeWidth) row.put(kTimeWidth - 1 - time.size(), time, "\033[2m");
    for (size_t lane = 0; lane < timeline_.lanes.size(); ++lane)
      row.put(place(lane), U'│', "\033[2m");
    return row;
  }

  void write_here(size_t lane, std::string time, const std::string& text, const char* color) {
    size_t indent = 0;
    while (indent < text.size() && text[indent] == ' ') ++indent;
    for (const std::string& line : wrap(text.substr(indent), column_ - 3 - indent)) {
      TextRow row = lifelines(time);
      row.put(place(lane) + 2 + indent, line, color);
      print(row);
      time.clear();
    }
  }

  void write_arrow(const Happening& one, std::string time, const std::string& text,
                   const char* color) {
    const bool right = one.to > one.lane;
    const size_t left_at = place(std::min(one.lane, one.to));
    const size_t right_at = place(std::max(one.lane, one.to));
    const size_t room = right_at - left_at - 7;
    const std::vector<std::string> lines = wrap(text, room);
    for (size_t i = 0; i < lines.size(); ++i) {
      TextRow row = lifelines(time);
      time.clear();
      if (i == 0) {
        for (size_t at = left_at + 1; at < right_at; ++at) row.put(at, U'─', color);
        const size_t head = right ? right_at - 1 : left_at + 1;
        row.put(head, one.lost ? U'✗' : right ? U'▶' : U'◀', color);
      }
      const size_t at = left_at + 4;
      if (i == 0) row.put(at - 1, U' ', color);
      row.put(at, lines[i], color);
      if (i == 0) row.put(at + lines[i].size(), U' ', color);
      print(row);
    }
  }

  void print(const TextRow& row) { out_ << row.text(options_.color) << "\n"; }

  const Timeline& timeline_;
  const TextOptions& options_;
  std::ostream& out_;
  size_t column_ = 0;
  std::optional<engine::Instant> last_;
};

}  // namespace

void write_text(const Timeline& timeline, const TextOptions& options, std::ostream& out) {
  Ladder ladder(timeline, options, out);
  ladder.write_head();
  for_each_group(timeline, [&](const Happening& one, size_t count) { ladder.write(one, count); });
  ladder.write_notes();
}

}  // namespace rocemu::timeline
