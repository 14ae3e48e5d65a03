#include "emulator/timeline/beside.h"

#include <algorithm>
#include <iterator>
#include <regex>

namespace rocemu::timeline {
namespace {

/// Starting PSNs are chosen by chance; beside them stand relative ones.
std::string without_chance(const std::string& text) {
  static const std::regex absolute("\\([0-9]+\\)");
  return text.find('(') == std::string::npos ? text : std::regex_replace(text, absolute, "()");
}

bool are_same(const Happening& a, const Happening& b) {
  return a.kind == b.kind && a.lane == b.lane && a.to == b.to && a.lost == b.lost &&
         without_chance(a.text) == without_chance(b.text);
}

std::string text_at(const Timeline& timeline, size_t at) {
  return at < timeline.happenings.size() ? timeline.happenings[at].text : "nothing more";
}

}  // namespace

Timeline beside(Timeline first, Timeline second) {
  const auto& a = first.happenings;
  const auto& b = second.happenings;
  const size_t common = std::min(a.size(), b.size());
  size_t differ = 0;
  while (differ < common && are_same(a[differ], b[differ])) ++differ;
  const bool is_same = differ == a.size() && differ == b.size();

  Timeline both;
  both.source = first.source + " and " + second.source;
  both.clock = first.clock;
  both.wall_start_ns = first.wall_start_ns;
  both.lanes = first.lanes;
  const auto offset = static_cast<uint32_t>(first.lanes.size());
  std::ranges::copy(second.lanes, std::back_inserter(both.lanes));
  for (uint32_t i = 0; i < both.lanes.size(); ++i) {
    Lane& lane = both.lanes[i];
    lane.process = (i < offset ? "1st run " : "2nd run ") + lane.process;
  }
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i == differ) {
      Happening& mark = both.happenings.emplace_back();
      mark.at = (i < a.size() ? a[i] : b[i]).at;
      mark.kind = Kind::kFault;
      mark.tone = Tone::kError;
      mark.lane = i < a.size() ? a[i].lane : b[i].lane + offset;
      mark.text = mark.topic = "first difference";
      mark.reason = "1st run: " + text_at(first, i) + "; 2nd run: " + text_at(second, i);
    }
    if (i < a.size()) both.happenings.push_back(a[i]);
    if (i >= b.size()) continue;
    Happening& moved = both.happenings.emplace_back(b[i]);
    moved.lane += offset;
    if (moved.to != kNoLane) moved.to += offset;
  }
  for (const Timeline* one : {&first, &second}) {
    for (const std::string& note : one->notes) both.notes.push_back(one->source + ": " + note);
  }
  if (is_same) both.notes.push_back("in both runs the same happens");
  return both;
}

}  // namespace rocemu::timeline
