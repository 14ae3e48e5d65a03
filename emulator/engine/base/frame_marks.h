// The engine's information about a frame beyond its bytes: its number, why it is retransmitted, and
// the effects of rules. A recording contains these marks in addition to the bytes.
#pragma once

#include <cstdint>
#include <utility>

#include "emulator/engine/base/time.h"

namespace rocemu::engine {

/// The reason why a sender repeats an earlier packet.
enum class Resent : uint8_t {
  kNo,
  kAckTimeout,   // IBTA vol 1, 9.7.6.1.3: no response arrived in time
  kSequenceNak,  // 9.7.5.1.2: the responder misses a request
  kRnrNak,       // 9.7.5.2.8: the responder was not ready, and its timer expired
  kImpliedNak,   // 9.7.5.1.2: a later response arrived without the one before it
  kNoMemory,     // a response arrived, and its memory was not available
  kNoReply,      // 12.9: a message of the connection manager was not answered in time
  kDuplicate,    // a responder answers a request that it has answered before
};
inline constexpr std::pair<const char*, Resent> kResentNames[] = {
    {"ack_timeout", Resent::kAckTimeout}, {"sequence_nak", Resent::kSequenceNak},
    {"rnr_nak", Resent::kRnrNak},         {"implied_nak", Resent::kImpliedNak},
    {"no_memory", Resent::kNoMemory},     {"no_reply", Resent::kNoReply},
    {"duplicate", Resent::kDuplicate},
};

struct Resend {
  Resent why = Resent::kNo;
  bool begins = false;  // the first frame that is retransmitted for this reason
  Duration waited{};    // kAckTimeout, kRnrNak, kNoReply: the timer that expired
};

struct FrameMarks {
  uint64_t number = 0;        // frames are counted from 1 in the order of sending
  uint64_t made_up_with = 0;  // a rule injected the frame when that frame was sent
  uint32_t copy = 0;          // a rule made this copy of the frame; 0 is the frame itself
  bool lost = false;          // a rule dropped it
  Duration held{};            // from its sending until it continued
  Duration link_delay{};      // the part of `held` due to rules for the link
  Resend resend = {};
};

/// The effects of a rule on a frame, as a set.
enum class FrameChange : uint32_t {
  kDropped = 1 << 0,
  kRejected = 1 << 1,  // dropped, and answered in the peer's place
  kRewritten = 1 << 2,
  kCorrupted = 1 << 3,
  kDelayed = 1 << 4,
  kDuplicated = 1 << 5,
  kReordered = 1 << 6,
  kInjected = 1 << 7,  // another frame was injected beside it
};
inline constexpr std::pair<const char*, FrameChange> kFrameChangeNames[] = {
    {"dropped", FrameChange::kDropped},     {"rejected", FrameChange::kRejected},
    {"rewritten", FrameChange::kRewritten}, {"corrupted", FrameChange::kCorrupted},
    {"delayed", FrameChange::kDelayed},     {"duplicated", FrameChange::kDuplicated},
    {"reordered", FrameChange::kReordered}, {"injected", FrameChange::kInjected},
};
constexpr bool has(uint32_t changes, FrameChange change) {
  return (changes & static_cast<uint32_t>(change)) != 0;
}

/// The frame on which a rule acted, and the effects on it
struct FrameFault {
  uint64_t number = 0;   // FrameMarks::number; 0: the rule did not act on a frame
  uint32_t changes = 0;  // FrameChange
  Duration delay{};
};

}  // namespace rocemu::engine
