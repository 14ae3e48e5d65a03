// A run as a list of lanes and a list of their happenings, in order. It is read from a recording
// (read_recording.h) or a capture (read_capture.h), and ladders, pages and traces are drawn from
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/engine/base/time.h"

namespace rocemu::timeline {

inline constexpr uint32_t kNoLane = UINT32_MAX;

/// A lane for one QP of one process, for a process without QPs, or for a remote end in a capture
struct Lane {
  std::string process;  // "rping"; empty if unknown, as in a capture
  uint32_t pid = 0;
  std::string device;  // its name, or an address if it is outside the fabric
  std::string type;    // of the QP: "RC"; empty if unknown
  uint32_t qpn = 0;    // 0: none
  uint8_t run = 0;     // 1 or 2 if two runs are combined
};

enum class Kind : uint8_t { kVerb, kPost, kFrame, kCm, kCompletion, kEvent, kFault };
inline constexpr std::pair<const char*, Kind> kKindNames[] = {
    {"verb", Kind::kVerb},
    {"post", Kind::kPost},
    {"frame", Kind::kFrame},
    {"cm", Kind::kCm},
    {"completion", Kind::kCompletion},
    {"event", Kind::kEvent},
    {"fault", Kind::kFault},
};

/// Returns the name of a kind of happening, such as "frame".
const char* kind_name(Kind kind);

enum class Tone : uint8_t { kPlain, kAgain, kFault, kError };

using Details = std::vector<std::pair<std::string, std::string>>;

struct Happening {
  engine::Instant at{};
  Kind kind{};
  Tone tone = Tone::kPlain;
  uint32_t lane = 0;      // of a frame: its sender's
  uint32_t to = kNoLane;  // of a frame: its receiver's
  bool is_request = false;
  bool lost = false;  // a rule dropped it
  engine::Duration flight{};
  engine::Duration held{};     // the time for which rules held the frame before `at`
  std::string text;            // "SEND First psn +0 (3744812)"
  std::string reason;          // why, in words
  std::string topic;           // the topic of `rocemu explain` about it
  std::string state;           // the QP's state from now on
  std::optional<int32_t> psn;  // relative to the connection
  Details details;
  std::vector<uint8_t> bytes;  // of the frame, as far as they were recorded
  uint32_t size = 0;           // of the frame
};

/// A field of a happening in which two runs differ, with its value in each run.
struct Difference {
  std::string field, first, second;
};

struct Timeline {
  std::string source;  // the name of the file
  std::string clock;
  int64_t wall_start_ns = 0;
  std::vector<Lane> lanes;
  std::vector<Happening> happenings;
  std::vector<std::string> notes;       // what was skipped, and the reason
  std::vector<Difference> differences;  // at the first difference of two runs
};

/// Returns the lane's title, such as "rping[4711] rocemu0 QP 0x11". Parts that are unknown are left
/// out.
std::string title(const Lane& lane);
/// Returns the duration with a suitable unit, such as "14.2 us" or "655.36 ms".
std::string duration_text(engine::Duration duration);

}  // namespace rocemu::timeline
