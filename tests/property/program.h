// Random verbs programs: the actions of two connected applications, and the faults of their link.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <vector>

namespace rocemu::property {

inline constexpr uint32_t kSides = 2;
inline constexpr uint32_t kConnections = 3;  // each has a QP on both sides
inline constexpr uint32_t kMtu = 256;        // except for UD, where a message is one packet
inline constexpr uint32_t kLargest = 6 * kMtu;

/// The kind of a connection's QPs.
enum class Kind : uint8_t {
  kRc,
  kRcShared,  // receives from the side's SRQ
  kXrc,       // an INI and a TGT QP on each side, with the side's XRC SRQ
  kUc,
  kUd,
};
inline bool is_reliable(Kind kind) {
  return kind != Kind::kUc && kind != Kind::kUd;
}
/// Returns whether the receives are in a queue that other connections also use.
inline bool is_shared(Kind kind) {
  return kind == Kind::kRcShared || kind == Kind::kXrc;
}

enum class Act : uint8_t {
  kSend,
  kSendImm,
  kWrite,
  kWriteImm,
  kRead,         // reads a range that is never written
  kReadWritten,  // reads the range that this side's latest WRITE of the connection has written
  kCompareSwap,
  kFetchAdd,
  // Acts with memory windows of type 2, of which each RC QP has one.
  kBind,  // binds to a range that was not written yet
  kLocalInvalidate,
  kSendInvalidate,  // invalidates the peer's window
  kWriteWindow,     // writes to a new range of the peer's window
  // Receives.
  kReceive,       // posts `sges` receives
  kShortReceive,  // posts one receive of kShortest bytes
  kLimit,         // arms the limit event of the connection's SRQ
  kWait,          // lets time pass
  kResume,        // brings the QP from SQE back to RTS
  // Mistakes.
  kBadWrite,       // with an R_Key that no region has
  kBadRead,        // the same
  kStaleWindow,    // a WRITE with the R_Key of a window that was invalidated
  kBadAtomic,      // at an address that is not a multiple of 8
  kBadSource,      // with an L_Key that no region has
  kForeignWrite,   // with an R_Key of the peer's other PD
  kForeignSource,  // with an L_Key of the other PD
  kForeignBind,    // binds to a region of the other PD, or binds a window of the other PD
  kForeignWindow,  // a WRITE through the window that the peer bound for another connection
  kTooLong,        // longer than any receive; for UD, also longer than the port's MTU
};

struct Op {
  Act act = Act::kSend;
  uint8_t side = 0;
  uint8_t connection = 0;
  uint8_t word = 0;  // atomics: one of 4 words; kLimit: the limit
  uint8_t sges = 1;  // the number of pieces of the local buffer, 1 to 3
  bool signaled = true;
  bool fenced = false;
  bool is_inline = false;  // only if inline data is allowed and fits
  uint32_t size = 0;       // bytes; for kWait microseconds
};

struct Link {
  uint32_t seed = 0;
  uint8_t loss = 0;      // percent
  uint8_t doubling = 0;  // percent
  uint8_t lateness = 0;  // percentage of frames that other frames overtake
};

struct Program {
  uint32_t first_psn = 0;
  uint8_t rd_atomic = 1;
  std::array<Kind, kConnections> kinds{};
  std::array<uint8_t, kConnections>
      pds{};  // bit 0 and bit 1: for each side, which of its two PDs the QP has
  Link link;
  std::vector<Op> ops;
};

std::ostream& operator<<(std::ostream& os, const Op& op);
std::ostream& operator<<(std::ostream& os, const Program& program);

}  // namespace rocemu::property
