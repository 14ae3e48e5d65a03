// Shrinks a schedule that makes a program fail: removes the stops that are not needed for the
// failure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emulator/explore/trials/schedule_stop.h"

namespace rocemu::explore {

/// The result of a run with a schedule: whether the run ended like the finding, and where threads
/// were stopped.
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

/// Searches for the fewest stops of the schedule `number` that lead to the finding: first with
/// threads in the order in which they started, then in the schedule's order. Uses delta debugging
/// (Zeller, Hildebrandt, "Simplifying and isolating failure-inducing input", IEEE TSE 28, 2002).
/// Calls `run` for each schedule to try, at most `most_runs` times. `stops` are the places where a
/// run with the whole schedule stopped threads. Returns an empty number if no schedule with such
/// stops leads to the finding.
ShrunkSchedule shrink_schedule(const std::string& number, const std::vector<ScheduleStop>& stops,
                               const std::function<ScheduledRun(const std::string& schedule)>& run,
                               size_t most_runs);

}  // namespace rocemu::explore
