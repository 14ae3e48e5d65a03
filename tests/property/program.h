// Random verbs programs: the actions of two connected applications, and the faults of their link.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <vector>

namespace rocemu::property {

inline constexpr uint32_t kSides = 2;
inline constexpr uint32_t kConnections = 3;  // each a QP on either side
inline constexpr uint32_t kMtu = 256;        // not of UD, where a message is a packet
inline constexpr uint32_t kLargest = 6 * kMtu;

/// The kind of a connection's QPs
enum class Kind : uint8_t {
  kRc,
  kRcShared,  // with the side's SRQ
  kXrc,       // an INI and a TGT QP on each side, and the side's XRC SRQ
  kUc,
  kUd,
};
inline bool is_reliable(Kind kind) {
  return kind != Kind::kUc && kind != Kind::kUd;
}
/// Its receives are in a queue that others also use.
inline bool is_shared(Kind kind) {
  return kind == Kind::kRcShared || kind == Kind::kXrc;
}

enum class Act : uint8_t {
  kSend,
  kSendImm,
  kWrite,
  kWriteImm,
  kRead,         // of a place that nobody writes
  kReadWritten,  // of what the connection's latest WRITE of this side has written
  kCompareSwap,
  kFetchAdd,
  // Memory windows of type 2, one for each RC QP.
  kBind,  // to a place that nobody has written yet
  kLocalInvalidate,
  kSendInvalidate,  // of the peer's window
  kWriteWindow,     // to a new place in the peer's window
  // Receives.
  kReceive,       // posts `sges` of them
  kShortReceive,  // posts one of kShortest bytes
  kLimit,         // arms the limit event of the connection's SRQ
  kWait,          // lets time pass
  kResume,        // takes the QP out of SQE
  // Mistakes.
  kBadWrite,       // with an R_Key that names nothing
  kBadRead,        // the same
  kStaleWindow,    // a WRITE with the R_Key of a window that was invalidated
  kBadAtomic,      // at an address that is no multiple of 8
  kBadSource,      // with an L_Key that names nothing
  kForeignWrite,   // with an R_Key of the peer's other PD
  kForeignSource,  // with an L_Key of the other PD
  kForeignBind,    // of the other PD's region, or of a window that is of the other PD
  kForeignWindow,  // a WRITE through the window that the peer gave to another connection
  kTooLong,        // for any receive; for UD, also for the port
};

struct Op {
  Act act = Act::kSend;
  uint8_t side = 0;
  uint8_t connection = 0;
  uint8_t word = 0;  // of an atomic: which of 4; of kLimit: the limit
  uint8_t sges = 1;  // 1 to 3 pieces of the local buffer
  bool signalled = true;
  bool fenced = false;
  bool is_inline = false;  // where it may be and fits
  uint32_t size = 0;       // bytes; of kWait microseconds
};

struct Link {
  uint32_t seed = 0;
  uint8_t loss = 0;      // percent
  uint8_t doubling = 0;  // percent
  uint8_t lateness = 0;  // percent of frames that others overtake
};

struct Program {
  uint32_t first_psn = 0;
  uint8_t rd_atomic = 1;
  std::array<Kind, kConnections> kinds{};
  std::array<uint8_t, kConnections>
      pds{};  // bit 0 and 1: which of its two PDs each side's QP is of
  Link link;
  std::vector<Op> ops;
};

std::ostream& operator<<(std::ostream& os, const Op& op);
std::ostream& operator<<(std::ostream& os, const Program& program);

}  // namespace rocemu::property
