#include "emulator/timeline/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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

/// Returns the index of the first error; if there is none, that of the first fault.
std::optional<size_t> first_error(const Timeline& timeline) {
  const auto& all = timeline.happenings;
  for (const Tone tone : {Tone::kError, Tone::kFault}) {
    const auto found = std::ranges::find(all, tone, &Happening::tone);
    if (found != all.end()) return static_cast<size_t>(found - all.begin());
  }
  return std::nullopt;
}

void keep(size_t first, size_t end, Timeline& timeline) {
  auto& all = timeline.happenings;
  timeline.notes.push_back(
      fmt::format("rows that are not shown: {} earlier, {} later", first, all.size() - end));
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(end), all.end());
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first));
}

/// Returns the list as text: "a, b". Long lists are shortened.
std::string listing(const std::set<std::string>& names) {
  constexpr size_t kMost = 20;
  std::string text;
  size_t count = 0;
  for (const std::string& name : names) {
    if (++count > kMost) return fmt::format("{} and {} more", text, names.size() - kMost);
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

std::string unmatched(const char* option, const char* noun, const std::string& value,
                      const std::set<std::string>& names) {
  return fmt::format("--{} {}: there is no such {}; there {}", option, value, noun,
                     names.empty() ? "is none" : "are " + listing(names));
}

}  // namespace

std::string why_unmatched(const Selection& selection, const Timeline& timeline) {
  std::set<std::string> processes, devices, qps, known_processes;
  std::set<uint32_t> qpns;
  for (const Lane& lane : timeline.lanes) {
    if (!lane.process.empty() || lane.pid != 0) {
      processes.insert(fmt::format("{} ({})", lane.process, lane.pid));
      known_processes.insert({lane.process, std::to_string(lane.pid)});
    }
    if (!lane.device.empty()) devices.insert(lane.device);
    if (lane.qpn != 0 && qpns.insert(lane.qpn).second) qps.insert(fmt::format("{:#x}", lane.qpn));
  }
  for (const std::string& process : selection.processes)
    if (!known_processes.contains(process))
      return unmatched("process", "process", process, processes);
  for (const std::string& device : selection.devices)
    if (!devices.contains(device)) return unmatched("device", "device", device, devices);
  for (const uint32_t qpn : selection.qpns)
    if (!qpns.contains(qpn)) return unmatched("qp", "QP", fmt::format("{:#x}", qpn), qps);
  return "";
}

void limit(size_t most, Timeline& timeline) {
  const size_t all = timeline.happenings.size();
  if (all <= most) return;
  const size_t at = first_error(timeline).value_or(0);
  const size_t first = std::min(at - std::min(at, most / 2), all - most);
  timeline.notes.push_back(
      fmt::format("at most {} rows are shown; --from, --to, --kind and --qp choose others", most));
  keep(first, first + most, timeline);
  drop_empty_lanes(timeline);
}

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
    const size_t count = *selection.around_error;
    const std::optional<size_t> error = first_error(timeline);
    const size_t all = timeline.happenings.size();
    const size_t at = error.value_or(all);
    const size_t first = at - std::min(at, error ? count : 2 * count);
    if (!error) timeline.notes.push_back("there is no error and no fault: the last rows are shown");
    keep(first, std::min(all, at + count + 1), timeline);
  }
  drop_empty_lanes(timeline);
}

}  // namespace rocemu::timeline
