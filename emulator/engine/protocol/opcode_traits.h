// What each send opcode asks of the peer, and how its packets look.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "emulator/abi/rings.h"
#include "emulator/abi/verbs_values.h"
#include "wire/packet.h"

namespace rocemu::engine {

enum class RequestKind : uint8_t {
  kSend,         // SEND: payload into a receive buffer
  kWrite,        // RDMA WRITE: payload to an address
  kRead,         // RDMA READ: one request, answered by as many PSNs as the data takes
  kAtomic,       // one request, one answer
  kAtomicWrite,  // 8 bytes to an address, at once; answered as a READ of no bytes
  kFlush,        // makes what was written visible or persistent; answered in the same way
  kLocal,        // of this device only: no packet and no PSN
};

/// Nothing for opcodes that a reliable connection cannot carry.
std::optional<RequestKind> request_kind(abi::WrOpcode opcode);

/// Of a packet of the message; first and last are both set on one that is the whole of it.
wire::Opcode request_opcode(abi::WrOpcode opcode, bool first, bool last);

/// What completes at the requester.
abi::WcOpcode completion_opcode(abi::WrOpcode opcode);

constexpr bool has_immediate(abi::WrOpcode opcode) {
  return opcode == abi::WrOpcode::kSendWithImm || opcode == abi::WrOpcode::kRdmaWriteWithImm;
}

/// ibv_post_send(3), IBV_SEND_SOLICITED: "Valid only for Send and RDMA Write with immediate", which
/// use up a receive. IBTA vol 1, 9.2.3: no other request has the SE bit.
constexpr bool can_be_solicited(RequestKind kind, abi::WrOpcode opcode) {
  return kind == RequestKind::kSend || opcode == abi::WrOpcode::kRdmaWriteWithImm;
}

/// A request that is complete only when its answer has come. The responder has room for so many at
/// a time (max_rd_atomic), and a fence waits for them.
constexpr bool wants_response(RequestKind kind) {
  switch (kind) {
    case RequestKind::kRead:
    case RequestKind::kAtomic:
    case RequestKind::kAtomicWrite:
    case RequestKind::kFlush:
      return true;
    case RequestKind::kSend:
    case RequestKind::kWrite:
    case RequestKind::kLocal:
      break;
  }
  return false;
}

/// Whose answer has data, which goes where the WQE's SGEs say.
constexpr bool places_response(RequestKind kind) {
  return kind == RequestKind::kRead || kind == RequestKind::kAtomic;
}

/// PSNs that a message of that length takes: one at least.
constexpr uint32_t psn_count(uint32_t length, uint32_t mtu) {
  return std::max<uint32_t>(1, (length + mtu - 1) / mtu);
}

}  // namespace rocemu::engine
