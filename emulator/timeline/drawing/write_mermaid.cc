#include "emulator/timeline/drawing/write_mermaid.h"

#include <fmt/format.h>

#include <string>

#include "emulator/timeline/drawing/ladder_layout.h"

namespace rocemu::timeline {
namespace {

/// Returns the text with #NUMBER; in place of each character that has a meaning in Mermaid.
std::string mermaid_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '#' || c == ';' || c == '<' || c == '>' || c == '%' || c == '{' || c == '}' ||
        c == '[' || c == ']' || c == '"') {
      out += fmt::format("#{};", static_cast<int>(c));
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out;
}

}  // namespace

void write_mermaid(const Timeline& timeline, std::ostream& out) {
  out << "sequenceDiagram\n";
  for (size_t i = 0; i < timeline.lanes.size(); ++i)
    out << "  participant L" << i << " as " << mermaid_text(title_with_type(timeline.lanes[i]))
        << "\n";
  for_each_group(timeline, [&](const Happening& one, size_t count) {
    std::string text = duration_text(one.at.time_since_epoch()) + "<br/>" +
                       mermaid_text(text_of_group(one, count));
    if (!one.reason.empty()) text += "<br/>" + mermaid_text(one.reason);
    if (one.kind != Kind::kFrame && one.kind != Kind::kCm) {
      out << "  Note over L" << one.lane << ": " << text << "\n";
      return;
    }
    const char* arrow = one.lost ? "-x" : one.is_request ? "->>" : "-->>";
    out << "  L" << one.lane << arrow << "L" << (one.to == kNoLane ? one.lane : one.to) << ": "
        << text << "\n";
  });
  for (const std::string& note : timeline.notes) {
    out << "  %% " << note << "\n";
  }
}

}  // namespace rocemu::timeline
