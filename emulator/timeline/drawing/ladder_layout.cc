#include "emulator/timeline/drawing/ladder_layout.h"

#include <fmt/format.h>

namespace rocemu::timeline {
namespace {

bool are_alike(const Happening& a, const Happening& b) {
  return a.kind == b.kind && a.kind != Kind::kFrame && a.kind != Kind::kCm && a.at == b.at &&
         a.lane == b.lane && a.to == b.to && a.text == b.text && a.reason == b.reason;
}

}  // namespace

std::vector<std::string> wrap(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  size_t at = 0;
  while (text.size() - at > width) {
    size_t cut = text.rfind(' ', at + width);
    if (cut == std::string::npos || cut <= at) cut = at + width;
    lines.push_back(text.substr(at, cut - at));
    at = cut + (cut < text.size() && text[cut] == ' ' ? 1 : 0);
  }
  lines.push_back(text.substr(at));
  return lines;
}

void for_each_group(const Timeline& timeline,
                    const std::function<void(const Happening&, size_t)>& write) {
  const auto& all = timeline.happenings;
  for (size_t i = 0; i < all.size();) {
    size_t end = i + 1;
    while (end < all.size() && are_alike(all[i], all[end])) ++end;
    write(all[i], end - i);
    i = end;
  }
}

std::string text_of_group(const Happening& one, size_t count) {
  return count > 1 ? fmt::format("{} ({} times)", one.text, count) : one.text;
}

std::vector<std::string> head_of(const Lane& lane, size_t width) {
  std::vector<std::string> lines;
  if (!lane.process.empty() || lane.pid != 0) {
    Lane process;
    process.process = lane.process;
    process.pid = lane.pid;
    lines = wrap(title(process), width);
  }
  Lane place = lane;
  place.process.clear();
  place.pid = 0;
  if (const std::string text = title_with_type(place); !text.empty()) {
    for (std::string& line : wrap(text, width)) lines.push_back(std::move(line));
  }
  return lines;
}

std::string title_with_type(const Lane& lane) {
  return lane.type.empty() ? title(lane) : title(lane) + " " + lane.type;
}

}  // namespace rocemu::timeline
