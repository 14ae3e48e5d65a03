// A place in a run of the user's program at which a fault is possible. It is identified by its
// process and its meaning in the protocol, and never by an address or a time.
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
  kPhase,  // of a process: its death, and faults of its device
};

struct FaultPoint {
  PointKind kind{};
  std::string process;  // "server#1"; empty for messages of the connection manager
  std::string name;     // of the verb, opcode, message or event
  std::string place;    // the keys of a rule that select it, except those that count
  /// The number of the point's occurrence, for a rule that counts: `nth` in its flow, and
  /// `nth_total` in total. 0 if `place` alone identifies the point.
  uint64_t nth = 0, nth_total = 0;
  uint64_t position = 0;      // from 1, among points with the same process, kind and name
  std::string call_site;      // of a verb, if it is known
  bool is_connected = false;  // its QP is RC, UC or XRC
  bool has_srq = false;       // its process created an SRQ
  uint64_t rank = 0;          // in its class, from 1; see representatives()
  int64_t time_ns = 0;
  size_t represents = 1;  // points of its class

  /// Returns a description of the point, such as "server#1's 2nd reg_mr".
  std::string text() const;
};

/// Returns all points of a recorded run, in the order of the recording.
std::vector<FaultPoint> fault_points(const RecordedEvents& events);

/// Returns points that represent all others. The points of a class differ only in their position:
/// verbs that a process called with the same call stack, or frames of the same flow. In each class,
/// the first, the second, those with a power of two as their number, and the last represent the
/// class.
std::vector<FaultPoint> representatives(const std::vector<FaultPoint>& points);

std::string_view name_of(PointKind kind);

}  // namespace rocemu::explore
