#include "emulator/timeline/write_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/timeline/ladder_layout.h"

namespace rocemu::timeline {
namespace {

constexpr double kCharacter = 7.8;  // pixels, of a monospaced font of 13 pixels
constexpr double kLine = 18;
constexpr size_t kTimeCharacters = 11;  // characters
constexpr size_t kLeastCharacters = 30;

constexpr std::string_view kStyle = R"(
text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1c2128; }
.back { fill: #ffffff; } .label { fill: #ffffff; }
.time, .lane { fill: #68727e; } .lane { stroke: #c9d1d9; } .head { font-weight: bold; }
line, path { stroke: #57606a; stroke-width: 1.3; fill: none; } .tip { fill: #57606a; stroke: none; }
text.again { fill: #8a5a00; } .again { stroke: #8a5a00; } .tip.again { fill: #8a5a00; }
text.fault { fill: #8a3ffc; } .fault { stroke: #8a3ffc; } .tip.fault { fill: #8a3ffc; }
text.error { fill: #c01c28; } .error { stroke: #c01c28; } .tip.error { fill: #c01c28; }
text { stroke: none !important; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .back, .label { fill: #0d1117; } .time { fill: #8d96a0; }
.lane { stroke: #3d444d; } line, path { stroke: #9da7b3; } .tip { fill: #9da7b3; }
.lane { stroke: #3d444d; }
text.again { fill: #e3b341; } .again { stroke: #e3b341; } .tip.again { fill: #e3b341; }
text.fault { fill: #c297ff; } .fault { stroke: #c297ff; } .tip.fault { fill: #c297ff; }
text.error { fill: #ff7b72; } .error { stroke: #ff7b72; } .tip.error { fill: #ff7b72; }
}
)";

std::string xml_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

const char* class_of(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "plain";
    case Tone::kAgain:
      return "again";
    case Tone::kFault:
      return "fault";
    case Tone::kError:
      return "error";
  }
  return "";
}

class Picture {
 public:
  Picture(const Timeline& timeline, size_t width) : timeline_(timeline) {
    const size_t lanes = std::max<size_t>(timeline.lanes.size(), 1);
    const size_t room = width > kTimeCharacters ? width - kTimeCharacters : 0;
    column_ = std::max(kLeastCharacters, room / lanes);
  }

  void write(std::ostream& out) {
    const double lanes_top = write_head();
    for_each_group(timeline_, [&](const Happening& one, size_t count) { write_row(one, count); });
    const double bottom = y_;
    for (const std::string& note : timeline_.notes) {
      for (const std::string& line : wrap("note: " + note, width()))
        write_text(0.5, next_line(), line, "time");
    }
    const double right = static_cast<double>(width()) * kCharacter;
    out << fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" "
        "height=\"{1:g}\" role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n"
        "<rect class=\"back\" width=\"{0:g}\" height=\"{1:g}\"/>\n",
        right, y_ + 8, xml_text("timeline of " + timeline_.source), kStyle);
    for (size_t lane = 0; lane < timeline_.lanes.size(); ++lane) {
      out << fmt::format(
          "<line class=\"lane\" x1=\"{0:g}\" x2=\"{0:g}\" y1=\"{1:g}\" y2=\"{2:g}\"/>\n",
          x_of(lane), lanes_top, bottom + 4);
    }
    out << body_ << "</svg>\n";
  }

 private:
  size_t width() const {
    return kTimeCharacters + column_ * std::max<size_t>(timeline_.lanes.size(), 1);
  }
  double x_of(size_t lane) const {
    return static_cast<double>(kTimeCharacters + lane * column_) * kCharacter;
  }
  double next_line() { return y_ += kLine; }

  double write_head() {
    double bottom = 0;
    for (size_t i = 0; i < timeline_.lanes.size(); ++i) {
      y_ = 0;
      for (const std::string& line : head_of(timeline_.lanes[i], column_ - 2))
        write_text(x_of(i) / kCharacter, next_line(), line, "head");
      bottom = std::max(bottom, y_);
    }
    y_ = bottom + 6;
    return y_;
  }

  void write_row(const Happening& one, size_t count) {
    const double top = next_line();
    if (!last_ || *last_ != one.at) {
      const std::string time = duration_text(one.at.time_since_epoch());
      const size_t room = kTimeCharacters - 1;
      write_text(static_cast<double>(room - std::min(room, time.size())), top, time, "time");
    }
    last_ = one.at;
    const std::string text = text_of_group(one, count);
    const char* tone = class_of(one.tone);
    if (one.to != kNoLane && one.to != one.lane) {
      write_arrow(one, text, tone);
    } else {
      write_here(one.lane, one.to == one.lane ? "to itself: " + text : text, 0, tone);
    }
    if (one.reason.empty()) return;
    next_line();
    write_here(one.lane, one.reason, 2, tone);
  }

  /// From the current line on.
  void write_here(size_t lane, const std::string& text, size_t indent, const char* tone) {
    bool is_first = true;
    for (const std::string& line : wrap(text, column_ - 3 - indent)) {
      if (!is_first) next_line();
      is_first = false;
      write_text(x_of(lane) / kCharacter + 1.5 + static_cast<double>(indent), y_, line, tone);
    }
  }

  /// The text stands above the line, which falls by as much as is seen of its time.
  void write_arrow(const Happening& one, const std::string& text, const char* tone) {
    const double from = x_of(one.lane);
    const double to = x_of(one.to);
    const size_t lanes = one.to > one.lane ? one.to - one.lane : one.lane - one.to;
    const double left = std::min(from, to) / kCharacter + 2;
    bool is_first = true;
    for (const std::string& line : wrap(text, lanes * column_ - 4)) {
      if (!is_first) next_line();
      is_first = false;
      write_text(left, y_, line, tone);
    }
    const double start = y_ + 4;
    const double fall = one.flight.count() > 0 ? 7 : 0;
    y_ += 4 + fall;
    const double way = to > from ? 1 : -1;
    const double stop = one.lost ? from + (to - from) * 0.75 : to - 8 * way;
    const double end = start + fall * (stop - from) / (to - from);
    body_ += fmt::format("<line class=\"{}\" x1=\"{:g}\" y1=\"{:g}\" x2=\"{:g}\" y2=\"{:g}\"/>\n",
                         tone, from, start, stop, end);
    if (one.lost) {
      body_ += fmt::format(
          "<path class=\"{0}\" d=\"M{1:g} {3:g}L{2:g} {4:g}M{1:g} {4:g}L{2:g} {3:g}\"/>\n", tone,
          stop - 5, stop + 5, end - 5, end + 5);
    } else {
      body_ += fmt::format("<path class=\"tip {}\" d=\"M{:g} {:g}L{:g} {:g}L{:g} {:g}Z\"/>\n", tone,
                           to, start + fall, stop, start + fall - 4, stop, start + fall + 4);
    }
  }

  /// `column` is in characters.
  void write_text(double column, double y, const std::string& text, const char* style) {
    body_ +=
        fmt::format("<text class=\"{}\" x=\"{:g}\" y=\"{:g}\" xml:space=\"preserve\">{}</text>\n",
                    style, column * kCharacter, y, xml_text(text));
  }

  const Timeline& timeline_;
  size_t column_ = 0;
  double y_ = 0;
  std::string body_;
  std::optional<engine::Instant> last_;
};

}  // namespace

void write_svg(const Timeline& timeline, size_t width, std::ostream& out) {
  Picture(timeline, width).write(out);
}

}  // namespace rocemu::timeline
