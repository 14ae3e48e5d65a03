// The rules that the NIC checks, and the functions that turn the NIC's observations into their
// findings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/sanitizer/sanitizer_rule.h"

namespace rocemu::sanitizer {

/// An object that a finding is about, and what the program did to it at the call site that the
/// report shows
struct NicObject {
  std::string what;   // "created"
  std::string title;  // "QP 5"
};

struct NicFinding {
  const Rule& rule;
  std::string message;  // as Report::message
  std::vector<NicObject> objects;
};

NicFinding cq_overrun(uint32_t cq);

struct MissingReceive {
  uint32_t qp;
  std::optional<uint32_t> srq;
  uint32_t from;     // the sender's QP
  bool is_repeated;  // with an RNR NAK; otherwise the message is lost
};
NicFinding receive_queue_empty(const MissingReceive& missing);

/// Two WRITEs to the same bytes that have no order
struct WriteRace {
  uint32_t qp;     // of the second
  uint32_t other;  // of the first
  uint32_t rkey;
  uint64_t address, length;
};
NicFinding remote_write_race(const WriteRace& race);

/// Returns the finding for a UD datagram that found a receive with enough space for its `payload`
/// bytes, but not for the GRH in front of them.
NicFinding ud_grh_ignored(uint32_t qp, uint32_t from, uint64_t payload);

enum class RefusalReason : uint8_t {
  kUnknownKey,
  kDeregistered,
  kOtherPd,
  kOtherQp,
  kNoAccess,
  kBeyond,
};
/// An access by a peer to memory that the NIC refused
struct RefusedAccess {
  uint32_t qp;    // of the memory's owner
  uint32_t from;  // of the peer
  uint32_t rkey;
  uint64_t address, length;
  uint32_t access;  // abi::AccessFlags
  RefusalReason reason;
  uint64_t opened_address, opened_length;  // the range of the key
  bool is_window;                          // whether it is a memory window, not a region
};
/// Returns the finding about the refused access, of the rule rkey-stale or protection-explained.
NicFinding access_refused(const RefusedAccess& refused);

}  // namespace rocemu::sanitizer
