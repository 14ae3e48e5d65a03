// The table of realistic faults for each kind of point. `rocemu explore` builds its scenarios from
// this table, and docs/faults.md shows it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/explore/points/point.h"

namespace rocemu::explore {

enum class Times : uint8_t { kOnce, kForEver };

/// The condition that a point must meet for a fault, in addition to its kind and name
enum class Needs : uint8_t {
  kNothing,
  kConnection,  // its QP is of a connected type: its peer's requests can be wrong
  kSrq,         // its process has an SRQ
};

struct Fault {
  PointKind kind;
  /// The names of the points at which the fault can happen, separated by blanks. A name that ends
  /// in * is a prefix. If empty, the fault can happen at all points.
  std::string_view names;
  std::string_view effect;  // the text after `do:`
  Times times;
  /// The description of the fault, which follows the point's description: "fails with ENOMEM". If
  /// the text has {}, the point's description replaces {}: "the device is removed at {}".
  std::string_view text;
  Needs needs = Needs::kNothing;
};

/// Events for which the table has no row, because another row's fault causes them, or because they
/// cannot happen.
struct EventNote {
  std::string_view names;  // separated by blanks, without their prefixes
  std::string_view text;
};

std::span<const Fault> fault_table();
/// Returns the notes about events. The table and these notes together name all events of
/// ibv_get_async_event(3) and rdma_get_cm_event(3).
std::span<const EventNote> event_notes();
std::vector<Fault> faults_for(const FaultPoint& point);

/// Returns a description of a fault at a point, such as "server#1's 2nd reg_mr fails with ENOMEM".
std::string text_of(const FaultPoint& point, const Fault& fault);

/// Returns the table and the notes in the form in which docs/faults.md shows them.
std::string table_as_markdown();

}  // namespace rocemu::explore
