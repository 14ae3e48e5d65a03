// One fault at one point: a scenario of its own.
#pragma once

#include <string>
#include <vector>

#include "emulator/explore/fault_table.h"
#include "emulator/explore/point.h"

namespace rocemu::explore {

struct Trial {
  size_t number = 0;     // its place in the plan, from 1
  std::string scenario;  // the text of the file that causes it
  std::string text;      // "server#1's 2nd reg_mr fails with ENOMEM"
  std::string kind;      // of the point
  std::string process;
  int64_t time_ns = 0;  // when the point comes in the baseline
  size_t represents = 1;
};

/// Every fault of every point. Those of the first of each class come before those of the second,
/// so that whoever has little time sees most of what there is.
std::vector<Trial> plan(const std::vector<FaultPoint>& points);

}  // namespace rocemu::explore
