#include "emulator/timeline/drawing/write_svg.h"

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "emulator/timeline/arrange.h"
#include "emulator/timeline/drawing/geometry.h"

namespace rocemu::timeline {
namespace {

/// The style of the picture. Each meaning has a color, and also a shape of lines or dots.
constexpr std::string_view kStyle = R"(
text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #1c2128; }
.back { fill: #ffffff; } .time { fill: #59636e; } .head { font-weight: bold; }
path { stroke: #57606a; stroke-width: 1.3; fill: none; } .lane { stroke: #c9d1d9; }
.tip, .dot { fill: #57606a; }
text.again { fill: #8a5a00; } .again { stroke: #8a5a00; } .tip.again { fill: #8a5a00; }
text.fault { fill: #8a3ffc; } .fault { stroke: #8a3ffc; } .tip.fault, .dot.fault { fill: #8a3ffc; }
text.error { fill: #c01c28; } .error { stroke: #c01c28; } .tip.error, .dot.error { fill: #c01c28; }
.dot.again { fill: #ffffff; stroke-width: 2; } .shaft.again { stroke-dasharray: 7 3; }
.shaft.fault { stroke-dasharray: 2 3; } .shaft.error, .cross { stroke-width: 2.2; }
text { stroke: none !important; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .back { fill: #0d1117; } .time { fill: #8d96a0; }
path { stroke: #9da7b3; } .lane { stroke: #3d444d; } .tip, .dot { fill: #9da7b3; }
text.again { fill: #e3b341; } .again { stroke: #e3b341; } .tip.again { fill: #e3b341; }
text.fault { fill: #c297ff; } .fault { stroke: #c297ff; } .tip.fault, .dot.fault { fill: #c297ff; }
text.error { fill: #ff7b72; } .error { stroke: #ff7b72; } .tip.error, .dot.error { fill: #ff7b72; }
.dot.again { fill: #0d1117; }
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

void write_texts(const std::vector<Label>& labels, std::string_view style, std::ostream& out) {
  for (const Label& label : labels) {
    double y = label.box.top + kBaseline;
    for (const std::string& line : label.lines) {
      out << fmt::format(
          "<text class=\"{}\" x=\"{:g}\" y=\"{:g}\" xml:space=\"preserve\">{}</text>\n",
          style.empty() ? class_of(label.tone) : style, label.box.left, y, xml_text(line));
      y += kLineHeight;
    }
  }
}

void write_dot(Point at, Tone tone, std::ostream& out) {
  std::string path;
  if (tone == Tone::kFault) {
    path = fmt::format("M{:g} {:g}l6 -6l6 6l-6 6z", at.x - 6, at.y);
  } else if (tone == Tone::kError) {
    path = fmt::format("M{:g} {:g}h8v8h-8z", at.x - 4, at.y - 4);
  } else {
    path = fmt::format("M{:g} {:g}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0", at.x - 3.5, at.y);
  }
  out << fmt::format("<path class=\"dot {}\" d=\"{}\"/>\n", class_of(tone), path);
}

void write_tip(Point before, Point end, Tone tone, std::ostream& out) {
  // std::hypot() is not used, since it would need glibc 2.35.
  const double across = end.x - before.x, down = end.y - before.y;
  const double length = std::sqrt(across * across + down * down);
  const double x = across / length, y = down / length;
  out << fmt::format("<path class=\"tip {}\" d=\"M{:g} {:g}L{:g} {:g}L{:g} {:g}Z\"/>\n",
                     class_of(tone), end.x, end.y, end.x - 9 * x + 4 * y, end.y - 9 * y - 4 * x,
                     end.x - 9 * x - 4 * y, end.y - 9 * y + 4 * x);
}

void write_arrow(const Arrow& arrow, const Timeline& timeline, std::ostream& out) {
  const Happening& one = timeline.happenings[arrow.happening];
  std::string line;
  for (const Point& point : arrow.points)
    line += fmt::format("{}{:g} {:g}", line.empty() ? "M" : "L", point.x, point.y);
  out << fmt::format(
      "<g><title>{}</title><path class=\"shaft {}\" d=\"{}\"/>\n",
      xml_text(fmt::format("{}, from {} to {}{}", one.text, title(timeline.lanes[one.lane]),
                           title(timeline.lanes[one.to]), one.lost ? ", lost" : "")),
      class_of(arrow.tone), line);
  const Point end = arrow.points.back();
  if (arrow.lost) {
    out << fmt::format(
        "<path class=\"cross {3}\" d=\"M{0:g} {1:g}l{2:g} {2:g}m0 -{2:g}l-{2:g} {2:g}\"/>\n",
        end.x - kCross, end.y - kCross, 2 * kCross, class_of(arrow.tone));
  } else {
    write_tip(arrow.points[arrow.points.size() - 2], end, arrow.tone, out);
  }
  write_dot(arrow.points.front(), arrow.tone, out);
  out << "</g>\n";
}

}  // namespace

void write_svg(const Timeline& timeline, size_t width, std::ostream& out) {
  const Geometry picture = lay_out(timeline, width);
  out << fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" "
      "height=\"{1:g}\" role=\"img\">\n<title>{2}</title>\n<style>{3}</style>\n"
      "<rect class=\"back\" width=\"{0:g}\" height=\"{1:g}\"/>\n",
      picture.width, picture.height, xml_text("timeline of " + timeline.source), kStyle);
  for (const double x : picture.lifelines)
    out << fmt::format("<path class=\"lane\" d=\"M{:g} {:g}V{:g}\"/>\n", x, picture.lifelines_top,
                       picture.lifelines_bottom);
  write_texts(picture.heads, "head", out);
  write_texts(picture.times, "time", out);
  for (const Arrow& arrow : picture.arrows) write_arrow(arrow, timeline, out);
  for (const Dot& dot : picture.dots) write_dot(dot.at, dot.tone, out);
  write_texts(picture.labels, "", out);
  write_texts(picture.notes, "time", out);
  out << "</svg>\n";
}

}  // namespace rocemu::timeline
