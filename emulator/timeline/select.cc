#include "emulator/timeline/select.h"

#include <fmt/format.h>

#include <algorithm>

namespace rocemu::timeline {
namespace {

bool matches(const Selection& selection, const Lane& lane) {
  const auto has = [](const auto& list, const auto& value) {
    return list.empty() || std::ranges::find(list, value) != list.end();
  };
  const bool process =
      has(selection.processes, lane.process) || has(selection.processes, std::to_string(lane.pid));
  return process && has(selection.devices, lane.device) && has(selection.qpns, lane.qpn);
}

void drop_empty_lanes(Timeline& timeline) {
  std::vector<uint32_t> into(timeline.lanes.size(), kNoLane);
  for (const Happening& one : timeline.happenings) {
    into[one.lane] = 0;
    if (one.to != kNoLane) into[one.to] = 0;
  }
  std::vector<Lane> lanes;
  for (size_t i = 0; i < into.size(); ++i) {
    if (into[i] == kNoLane) continue;
    into[i] = static_cast<uint32_t>(lanes.size());
    lanes.push_back(std::move(timeline.lanes[i]));
  }
  timeline.lanes = std::move(lanes);
  for (Happening& one : timeline.happenings) {
    one.lane = into[one.lane];
    if (one.to != kNoLane) one.to = into[one.to];
  }
}

}  // namespace

void select(const Selection& selection, Timeline& timeline) {
  std::erase_if(timeline.happenings, [&](const Happening& one) {
    const engine::Duration at = one.at.time_since_epoch();
    if (selection.from && at < *selection.from) return true;
    if (selection.to && at > *selection.to) return true;
    if (!selection.kinds.empty() && !selection.kinds.contains(one.kind)) return true;
    return !matches(selection, timeline.lanes[one.lane]) &&
           (one.to == kNoLane || !matches(selection, timeline.lanes[one.to]));
  });
  if (selection.around_error) {
    auto& all = timeline.happenings;
    const auto error = std::ranges::find(all, Tone::kError, &Happening::tone);
    if (error == all.end()) {
      timeline.notes.push_back("there is no error: all is shown");
    } else {
      const size_t at = static_cast<size_t>(error - all.begin());
      const size_t first = at - std::min(at, *selection.around_error);
      const size_t end = std::min(all.size(), at + *selection.around_error + 1);
      timeline.notes.push_back(
          fmt::format("{} before and {} after are not shown", first, all.size() - end));
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(end), all.end());
      all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first));
    }
  }
  drop_empty_lanes(timeline);
}

}  // namespace rocemu::timeline
