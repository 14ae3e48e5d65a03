// The meaning of the syndrome byte of an AETH (IBTA vol 1, 9.7.5.2.2 to 9.7.5.2.8)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rocemu::wire {

enum class AethKind : uint8_t { kAck, kRnrNak, kNak, kReserved };

enum class NakCode : uint8_t {
  kPsnSequenceError = 0,
  kInvalidRequest = 1,
  kRemoteAccessError = 2,
  kRemoteOperationalError = 3,
  kInvalidRdRequest = 4,
};

// The credit code of a responder that does not count credits (every responder with an SRQ, and
// Linux rxe).
inline constexpr uint8_t kCreditsInvalid = 0x1f;

// Returns the kind of a syndrome, which has three bits of kind and five of detail: a credit code,
// an RNR timer code, or a NakCode.
constexpr AethKind aeth_kind(uint8_t syndrome) {
  switch (syndrome >> 5) {
    case 0:
      return AethKind::kAck;
    case 1:
      return AethKind::kRnrNak;
    case 3:
      return AethKind::kNak;
    default:
      return AethKind::kReserved;
  }
}
constexpr uint8_t aeth_detail(uint8_t syndrome) {
  return syndrome & 0x1f;
}

constexpr uint8_t ack_syndrome(uint8_t credit_code = kCreditsInvalid) {
  return credit_code & 0x1f;
}
constexpr uint8_t rnr_nak_syndrome(uint8_t timer_code) {
  return static_cast<uint8_t>(0x20 | (timer_code & 0x1f));
}
constexpr uint8_t nak_syndrome(NakCode code) {
  return static_cast<uint8_t>(0x60 | static_cast<uint8_t>(code));
}

// The time that a requester waits after an RNR NAK, by the NAK's timer code (= ibv min_rnr_timer).
inline constexpr std::array<uint32_t, 32> kRnrTimerNs = {
    655'360'000, 10'000,      20'000,      30'000,      40'000,     60'000,     80'000,
    120'000,     160'000,     240'000,     320'000,     480'000,    640'000,    960'000,
    1'280'000,   1'920'000,   2'560'000,   3'840'000,   5'120'000,  7'680'000,  10'240'000,
    15'360'000,  20'480'000,  30'720'000,  40'960'000,  61'440'000, 81'920'000, 122'880'000,
    163'840'000, 245'760'000, 327'680'000, 491'520'000,
};

}  // namespace rocemu::wire
