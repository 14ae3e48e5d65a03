// What can honestly happen at each kind of point: the one table of which `rocemu explore` makes its
// scenarios, and of which docs/faults.md shows the same.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/explore/point.h"

namespace rocemu::explore {

enum class Times : uint8_t { kOnce, kForEver };

struct Fault {
  PointKind kind;
  /// Of the point, separated by blanks; one that ends in * begins the name. Empty: all.
  std::string_view names;
  std::string_view effect;  // what stands behind `do:`
  Times times;
  /// What stands behind the point's own text: "fails with ENOMEM". Or the point's stands where this
  /// has {}: "the device is removed at {}".
  std::string_view text;
};

std::span<const Fault> fault_table();
std::vector<Fault> faults_for(const FaultPoint& point);

/// "server#1's 2nd reg_mr fails with ENOMEM"
std::string text_of(const FaultPoint& point, const Fault& fault);

/// The table as docs/faults.md shows it.
std::string table_as_markdown();

}  // namespace rocemu::explore
