#include "emulator/explore/trials/shrink_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rocemu::explore {
namespace {

ScheduleStop stop(const std::string& place) {
  return {.place = place,
          .process = "server",
          .thread = "2",
          .before = "ibv_poll_cq",
          .after = "ibv_req_notify_cq"};
}

std::vector<ScheduleStop> stops(const std::vector<std::string>& places) {
  std::vector<ScheduleStop> all;
  for (const std::string& place : places) all.push_back(stop(place));
  return all;
}

/// A program whose race happens in one order of the threads, with certain stops of threads.
class Program {
 public:
  Program(std::string number, std::vector<std::string> needed)
      : number_(std::move(number)), needed_(std::move(needed)) {}

  ScheduledRun operator()(const std::string& schedule) {
    ++runs;
    const size_t colon = schedule.find(':');
    const std::string number = schedule.substr(0, colon);
    std::vector<std::string> places;
    for (size_t at = colon + 1; at < schedule.size();) {
      const size_t end = std::min(schedule.find(',', at), schedule.size());
      places.push_back(schedule.substr(at, end - at));
      at = end + 1;
    }
    const bool has_all = std::ranges::all_of(needed_, [&](const std::string& one) {
      return std::ranges::find(places, one) != places.end();
    });
    return {.is_again = has_all && (number_.empty() || number == number_), .stops = stops(places)};
  }

  int runs = 0;

 private:
  std::string number_;  // empty: each
  std::vector<std::string> needed_;
};

const std::vector<std::string> kPlaces = {"1/1", "1/2", "2/7", "3/1", "3/2", "3/3", "3/4", "4/1"};

TEST(ShrinkingASchedule, LeavesTheStopThatIsNeeded) {
  Program program("", {"3/2"});
  const ShrunkSchedule shrunk = shrink_schedule("17", stops(kPlaces), std::ref(program), 100);
  EXPECT_EQ(shrunk.schedule(), "0:3/2");
  EXPECT_EQ(shrunk.text(),
            "thread 2 of server is stopped between ibv_poll_cq and ibv_req_notify_cq");
}

TEST(ShrinkingASchedule, LeavesStopsThatAreNeededTogether) {
  Program program("", {"1/2", "4/1"});
  const ShrunkSchedule shrunk = shrink_schedule("17", stops(kPlaces), std::ref(program), 100);
  EXPECT_EQ(shrunk.schedule(), "0:1/2,4/1");
}

TEST(ShrinkingASchedule, KeepsTheOrderIfThatOfTheStartDoesNotLeadThere) {
  Program program("17", {"2/7"});
  const ShrunkSchedule shrunk = shrink_schedule("17", stops(kPlaces), std::ref(program), 100);
  EXPECT_EQ(shrunk.schedule(), "17:2/7");
}

TEST(ShrinkingASchedule, NeedsNoStopIfTheOrderIsEnough) {
  Program program("17", {});
  const ShrunkSchedule shrunk = shrink_schedule("17", stops(kPlaces), std::ref(program), 100);
  EXPECT_EQ(shrunk.schedule(), "17:");
  EXPECT_EQ(shrunk.text(), "threads execute in order 17, each until it waits");
}

TEST(ShrinkingASchedule, SaysIfNoStopsLeadThere) {
  Program program("17", {"9/9"});
  EXPECT_EQ(shrink_schedule("17", stops(kPlaces), std::ref(program), 100).number, "");
}

TEST(ShrinkingASchedule, MakesNoMoreRunsThanItMay) {
  Program program("", {"3/2"});
  const ShrunkSchedule shrunk = shrink_schedule("17", stops(kPlaces), std::ref(program), 5);
  EXPECT_EQ(program.runs, 5);
  EXPECT_NE(shrunk.schedule().find("3/2"), std::string::npos);
}

TEST(ScheduleStop, IsReadAsItIsWritten) {
  const std::vector<ScheduleStop> all = stops_of(
      "3/17 kv_server 2 ibv_poll_cq ibv_req_notify_cq\n1/4 client 1 pthread_mutex_lock -\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].text(), "thread 1 of client is stopped after pthread_mutex_lock");
  EXPECT_EQ(stops_of(to_text(all)), all);
}

}  // namespace
}  // namespace rocemu::explore
