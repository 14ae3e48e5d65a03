// Random verb programs: what two connected applications do, and what their link does to them.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

namespace rocemu::property {

inline constexpr uint32_t kSides = 2;
inline constexpr uint32_t kConnections = 2;  // each a QP on either side
inline constexpr uint32_t kMtu = 256;

enum class Act : uint8_t {
  kSend,
  kSendImm,
  kWrite,
  kWriteImm,
  kRead,         // of a place that nobody writes
  kReadWritten,  // of what the connection's latest WRITE of this side has written
  kCompareSwap,
  kFetchAdd,
  kReceive,   // posts one receive
  kWait,      // lets time pass
  kBadWrite,  // with an R_Key that names nothing: ends the connection
};

struct Op {
  Act act = Act::kSend;
  uint8_t side = 0;
  uint8_t connection = 0;
  uint8_t word = 0;  // of an atomic: which of 4
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
  Link link;
  std::vector<Op> ops;
};

std::ostream& operator<<(std::ostream& os, const Op& op);
std::ostream& operator<<(std::ostream& os, const Program& program);

}  // namespace rocemu::property
