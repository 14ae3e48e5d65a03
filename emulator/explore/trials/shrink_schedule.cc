#include "emulator/explore/trials/shrink_schedule.h"

#include <algorithm>
#include <utility>

#include "emulator/explore/trials/take_away.h"

namespace rocemu::explore {
namespace {

using Stops = std::vector<ScheduleStop>;

class Shrinking {
 public:
  Shrinking(const std::function<ScheduledRun(const std::string&)>& run, size_t most_runs)
      : run_(run), runs_left_(most_runs) {}

  /// Tries a schedule with only these stops. Returns whether it leads to the finding. If so, stores
  /// the stops as the best ones so far.
  bool leads(const std::string& number, const Stops& stops) {
    if (runs_left_ == 0) return false;
    --runs_left_;
    const ScheduledRun run = run_(schedule_with(number, stops));
    if (!run.is_again) return false;
    best_.number = number;
    best_.stops.clear();
    // Takes the stops from this run, since they have the names of its calls. Stops that this run
    // did not reach are left out.
    for (const ScheduleStop& stop : run.stops)
      if (std::ranges::find(stops, stop.place, &ScheduleStop::place) != stops.end())
        best_.stops.push_back(stop);
    return true;
  }

  /// Removes stops as long as the remaining ones lead to the finding.
  void take_away() {
    explore::take_away(
        best_.stops, [this](const Stops& rest) { return leads(best_.number, rest); }, runs_left_);
  }

  ShrunkSchedule best() { return std::move(best_); }

 private:
  const std::function<ScheduledRun(const std::string&)>& run_;
  size_t runs_left_;
  ShrunkSchedule best_;
};

}  // namespace

ShrunkSchedule shrink_schedule(const std::string& number, const Stops& stops,
                               const std::function<ScheduledRun(const std::string&)>& run,
                               size_t most_runs) {
  Shrinking shrinking(run, most_runs);
  if (shrinking.leads("0", {}) || shrinking.leads(number, {})) return shrinking.best();
  if (shrinking.leads("0", stops) || shrinking.leads(number, stops)) shrinking.take_away();
  return shrinking.best();
}

}  // namespace rocemu::explore
