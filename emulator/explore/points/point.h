// A place in a run of the user's program at which something can go wrong, by what it is in the
// protocol and in which process: never by an address or a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/explore/points/recorded_events.h"

namespace rocemu::explore {

enum class PointKind : uint8_t {
  kVerb,
  kWorkRequest,
  kSendCompletion,
  kReceiveCompletion,
  kFrame,
  kResponse,  // a frame that answers a request
  kRequest,   // a request packet at its responder
  kCm,
  kCmEvent,
  kEvent,
  kPhase,  // of a process: its death, and what befalls its device
};

struct FaultPoint {
  PointKind kind{};
  std::string process;  // "server#1"; empty of messages of the connection manager
  std::string name;     // of the verb, opcode, message or event
  std::string place;    // the keys of a rule that pick it, without those that count
  /// The number of the occurrence for rules that count, in each flow or in total. 0: `place`
  /// identifies it already.
  uint64_t nth = 0, nth_total = 0;
  uint64_t position = 0;      // among the points with its process, kind and name, from 1
  std::string call_site;      // of a verb, if it is known
  bool is_connected = false;  // its QP is RC, UC or XRC
  bool has_srq = false;       // its process made an SRQ
  uint64_t rank = 0;          // in its class, from 1; see representatives()
  int64_t time_ns = 0;
  size_t represents = 1;  // points of its class

  /// "server#1's 2nd reg_mr"
  std::string text() const;
};

/// All points of a recorded run, in the order in which they come.
std::vector<FaultPoint> fault_points(const RecordedEvents& events);

/// Points of one class differ in nothing but their position: verbs of a process came by the same
/// call stack, frames are of one flow. Of each class the first, the second, powers of two and the
/// last stand for all.
std::vector<FaultPoint> representatives(const std::vector<FaultPoint>& points);

std::string_view name_of(PointKind kind);

}  // namespace rocemu::explore
