// Removes from a schedule that breaks a program the stops that are not needed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emulator/explore/trials/schedule_stop.h"

namespace rocemu::explore {

/// The result of a run with a schedule: whether the run ended like the finding, and where threads
/// were stopped
struct ScheduledRun {
  bool is_again = false;
  std::vector<ScheduleStop> stops;
};

struct ShrunkSchedule {
  std::string number;               // of the order: "0", or that of the schedule
  std::vector<ScheduleStop> stops;  // the fewest that were found

  std::string schedule() const { return schedule_with(number, stops); }
  std::string text() const { return text_of(number, stops); }
};

/// Looks for the fewest stops of schedule `number` that lead to the finding: first with threads in
/// the order of their start, then in the schedule's order. The method is delta debugging (Zeller,
/// Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE TSE 28, 2002). Calls `run`
/// for each schedule that is tried, at most `most_runs` times. `stops` are the places where the
/// schedule's own run stopped threads. Returns an empty number if no schedule of stops leads to the
/// finding.
ShrunkSchedule shrink_schedule(const std::string& number, const std::vector<ScheduleStop>& stops,
                               const std::function<ScheduledRun(const std::string& schedule)>& run,
                               size_t most_runs);

}  // namespace rocemu::explore
