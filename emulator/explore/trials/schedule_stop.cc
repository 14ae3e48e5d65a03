#include "emulator/explore/trials/schedule_stop.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "emulator/explore/files.h"

namespace rocemu::explore {
namespace {

constexpr char kStopsFile[] = "stops";
constexpr size_t kMaxNamed = 3;

}  // namespace

std::string ScheduleStop::text() const {
  const std::string who = fmt::format("thread {} of {} is stopped ", thread, process);
  if (after == "-") return who + "after " + before;
  return fmt::format("{}between {} and {}", who, before, after);
}

std::vector<ScheduleStop> stops_of(const std::string& lines) {
  std::vector<ScheduleStop> stops;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    ScheduleStop stop;
    if (words >> stop.place >> stop.process >> stop.thread >> stop.before >> stop.after)
      stops.push_back(std::move(stop));
  }
  return stops;
}

std::vector<ScheduleStop> read_stops(const std::filesystem::path& recording) {
  const std::filesystem::path file = recording / kStopsFile;
  return std::filesystem::exists(file) ? stops_of(contents_of(file)) : std::vector<ScheduleStop>{};
}

std::string to_text(const std::vector<ScheduleStop>& stops) {
  std::string text;
  for (const ScheduleStop& stop : stops)
    text += fmt::format("{} {} {} {} {}\n", stop.place, stop.process, stop.thread, stop.before,
                        stop.after);
  return text;
}

std::string schedule_with(const std::string& number, const std::vector<ScheduleStop>& stops) {
  std::string text = number + ":";
  for (size_t i = 0; i < stops.size(); ++i) text += (i == 0 ? "" : ",") + stops[i].place;
  return text;
}

std::string text_of(const std::string& number, const std::vector<ScheduleStop>& stops) {
  const std::string order = number == "0" ? "start order" : "order " + number;
  if (stops.empty()) return "threads execute in " + order + ", each until it waits";
  std::string text;
  for (size_t i = 0; i < std::min(stops.size(), kMaxNamed); ++i)
    text += (i == 0 ? "" : ", and ") + stops[i].text();
  if (stops.size() > kMaxNamed)
    text += fmt::format(", and {} more stops", stops.size() - kMaxNamed);
  return text;
}

}  // namespace rocemu::explore
