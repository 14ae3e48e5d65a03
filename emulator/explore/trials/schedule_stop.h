// Reads the places at which a schedule stopped threads from the file `stops` of a recording
// (daemon/base/stop_log.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace rocemu::explore {

struct ScheduleStop {
  std::string place;          // "3/17": of `rocemu run --schedule N:3/17`
  std::string process;        // its program
  std::string thread;         // its number in the process
  std::string before, after;  // the calls between which it was stopped; "-" if it is not known

  /// Returns a description of the stop, such as "thread 2 of kv_server is stopped between
  /// ibv_poll_cq and ibv_req_notify_cq".
  std::string text() const;
  bool operator==(const ScheduleStop&) const = default;
};

std::vector<ScheduleStop> read_stops(const std::filesystem::path& recording);
/// Reads the stops from the lines of the file `stops`.
std::vector<ScheduleStop> stops_of(const std::string& lines);
std::string to_text(const std::vector<ScheduleStop>& stops);

/// Returns the value of --schedule that stops threads only at these places, such as "0:3/17,2/4".
std::string schedule_with(const std::string& number, const std::vector<ScheduleStop>& stops);
/// Returns a description of all stops, such as "thread 1 of ... is stopped between ..., and thread
/// 2 ...". If there are many, describes only the first.
std::string text_of(const std::string& number, const std::vector<ScheduleStop>& stops);

}  // namespace rocemu::explore
