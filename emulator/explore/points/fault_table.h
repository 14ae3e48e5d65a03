// The table of realistic faults at each kind of point. `rocemu explore` builds its scenarios from
// it, and docs/faults.md shows it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/explore/points/point.h"

namespace rocemu::explore {

enum class Times : uint8_t { kOnce, kForEver };

/// The condition that a point must meet in addition to its kind and name
enum class Needs : uint8_t {
  kNothing,
  kConnection,  // its QP is of a connected type: its peer's requests can be wrong
  kSrq,         // its process has an SRQ
};

struct Fault {
  PointKind kind;
  /// The names of points, separated by blanks; a name that ends in * is a prefix. Empty: all
  /// points.
  std::string_view names;
  std::string_view effect;  // the text after `do:`
  Times times;
  /// The text after the point's text: "fails with ENOMEM". If it has {}, the point's text is
  /// inserted there: "the device is removed at {}".
  std::string_view text;
  Needs needs = Needs::kNothing;
};

/// Events without a row in the table, because the effect of another row causes them, or because
/// they cannot happen.
struct EventNote {
  std::string_view names;  // separated by blanks, without their prefixes
  std::string_view text;
};

std::span<const Fault> fault_table();
/// Returns the notes. The table and the notes together name all events of ibv_get_async_event(3)
/// and rdma_get_cm_event(3).
std::span<const EventNote> event_notes();
std::vector<Fault> faults_for(const FaultPoint& point);

/// Returns a description such as "server#1's 2nd reg_mr fails with ENOMEM".
std::string text_of(const FaultPoint& point, const Fault& fault);

/// Returns the table and the notes as docs/faults.md shows them.
std::string table_as_markdown();

}  // namespace rocemu::explore
