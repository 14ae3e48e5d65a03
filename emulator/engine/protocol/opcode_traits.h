// The protocol of each send opcode: the packets of its request, and the response. There are two
// tables: one of send opcodes, and one of kinds of requests.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>

#include "emulator/abi/rings.h"
#include "emulator/abi/send_opcodes.h"
#include "emulator/abi/verbs_values.h"
#include "wire/opcode.h"

namespace rocemu::engine {

enum class RequestKind : uint8_t {
  kSend,         // SEND: payload into a receive buffer
  kWrite,        // RDMA WRITE: payload to an address
  kRead,         // RDMA READ: one request, answered with a PSN for each packet of data
  kAtomic,       // one request, one response
  kAtomicWrite,  // 8 bytes to an address, at once
  kFlush,        // makes earlier writes visible or persistent
  kLocal,        // only on this device: no packet and no PSN
};

/// The response for which a requester waits. All except acknowledgements use responder resources;
/// an acknowledgement may cover several requests.
enum class AnsweredBy : uint8_t {
  kNobody,
  kAcknowledge,
  kReadResponse,       // data, which is stored in the WQE's SGEs
  kAtomicAcknowledge,  // 8 bytes, which are stored there too
  kEmptyReadResponse,  // annex A19: a READ response without data
};

struct KindTraits {
  RequestKind kind;
  AnsweredBy answer;
  uint32_t access;  // ibv_qp_attr.qp_access_flags that the responder's QP needs
  uint32_t length;  // of each such message; 0: any
};

inline constexpr KindTraits kKindTraits[] = {
    {RequestKind::kSend, AnsweredBy::kAcknowledge, 0, 0},
    {RequestKind::kWrite, AnsweredBy::kAcknowledge, abi::kAccessRemoteWrite, 0},
    {RequestKind::kRead, AnsweredBy::kReadResponse, abi::kAccessRemoteRead, 0},
    {RequestKind::kAtomic, AnsweredBy::kAtomicAcknowledge, abi::kAccessRemoteAtomic, 8},
    {RequestKind::kAtomicWrite, AnsweredBy::kEmptyReadResponse, abi::kAccessRemoteWrite, 8},
    // The access flags of a FLUSH are checked together with its header.
    {RequestKind::kFlush, AnsweredBy::kEmptyReadResponse, 0, 0},
    {RequestKind::kLocal, AnsweredBy::kNobody, 0, 0},
};

constexpr const KindTraits& traits_of(RequestKind kind) {
  return kKindTraits[static_cast<size_t>(kind)];
}

struct SendTraits {
  abi::WrOpcode opcode;
  RequestKind kind;
  // The opcodes of the request's packets, as RC names them; in_transport() converts them for other
  // transports.
  wire::Opcode only{};
  wire::Opcode first{};
  wire::Opcode middle{};
  wire::Opcode last{};
};

namespace opcode_traits {

using abi::WrOpcode;
using enum wire::Opcode;

// clang-format off
inline constexpr SendTraits kSendTraits[] = {
    {WrOpcode::kSend,              RequestKind::kSend,        kRcSendOnly,     kRcSendFirst,  kRcSendMiddle,  kRcSendLast},
    {WrOpcode::kSendWithImm,       RequestKind::kSend,        kRcSendOnlyImm,  kRcSendFirst,  kRcSendMiddle,  kRcSendLastImm},
    {WrOpcode::kSendWithInv,       RequestKind::kSend,        kRcSendOnlyInv,  kRcSendFirst,  kRcSendMiddle,  kRcSendLastInv},
    {WrOpcode::kRdmaWrite,         RequestKind::kWrite,       kRcWriteOnly,    kRcWriteFirst, kRcWriteMiddle, kRcWriteLast},
    {WrOpcode::kRdmaWriteWithImm,  RequestKind::kWrite,       kRcWriteOnlyImm, kRcWriteFirst, kRcWriteMiddle, kRcWriteLastImm},
    {WrOpcode::kRdmaRead,          RequestKind::kRead,        kRcReadRequest},
    {WrOpcode::kAtomicCmpAndSwp,   RequestKind::kAtomic,      kRcCompareSwap},
    {WrOpcode::kAtomicFetchAndAdd, RequestKind::kAtomic,      kRcFetchAdd},
    {WrOpcode::kAtomicWrite,       RequestKind::kAtomicWrite, kRcAtomicWrite},
    {WrOpcode::kFlush,             RequestKind::kFlush,       kRcFlush},
    {WrOpcode::kLocalInv,          RequestKind::kLocal},
    {WrOpcode::kBindMw,            RequestKind::kLocal},
};
// clang-format on
static_assert(std::size(kSendTraits) == std::size(abi::kSendOpcodes));

/// The traits of each opcode; nullptr for opcodes that cannot be posted.
inline constexpr auto kByOpcode = [] {
  std::array<const SendTraits*, 32> by_opcode{};
  for (const SendTraits& row : kSendTraits) by_opcode[static_cast<size_t>(row.opcode)] = &row;
  return by_opcode;
}();

/// The traits of each operation that a request packet can have.
inline constexpr auto kByOperation = [] {
  std::array<const KindTraits*, 32> by_operation{};
  for (const SendTraits& row : kSendTraits) {
    if (row.kind == RequestKind::kLocal) continue;
    const auto operation = static_cast<size_t>(wire::find_opcode(row.only)->operation);
    by_operation[operation] = &traits_of(row.kind);
  }
  return by_operation;
}();

static_assert([] {
  for (size_t i = 0; i < std::size(kKindTraits); ++i) {
    if (kKindTraits[i].kind != static_cast<RequestKind>(i)) return false;
  }
  return true;
}());

}  // namespace opcode_traits

/// Returns the traits of the opcode, or nullptr for opcodes that cannot be posted; `opcode` can be
/// any number.
constexpr const SendTraits* find_send_traits(abi::WrOpcode opcode) {
  const auto number = static_cast<size_t>(opcode);
  return number < opcode_traits::kByOpcode.size() ? opcode_traits::kByOpcode[number] : nullptr;
}

/// Returns the traits of a request packet; nullptr for responses, and for packets that are not
/// messages of a QP.
constexpr const KindTraits* find_request_traits(wire::Operation operation) {
  return opcode_traits::kByOperation[static_cast<size_t>(operation)];
}

/// Returns the kind of request of the opcode; nothing for opcodes that cannot be posted.
constexpr std::optional<RequestKind> request_kind(abi::WrOpcode opcode) {
  const SendTraits* traits = find_send_traits(opcode);
  if (traits == nullptr) return std::nullopt;
  return traits->kind;
}

/// Returns the opcode of one packet of the message. A packet that is the whole message is both
/// first and last.
constexpr wire::Opcode request_opcode(abi::WrOpcode opcode, bool first, bool last) {
  const SendTraits& traits = *find_send_traits(opcode);
  if (!last) return first ? traits.first : traits.middle;
  return first ? traits.only : traits.last;
}

/// Returns the opcode of the requester's completion. The result has no meaning for an opcode that
/// cannot be posted.
constexpr abi::WcOpcode completion_opcode(abi::WrOpcode opcode) {
  const abi::SendOpcode* row = abi::find_send_opcode(opcode);
  return row == nullptr ? abi::WcOpcode::kSend : row->completion;
}

/// Returns whether a request can have the SE bit. ibv_post_send(3), IBV_SEND_SOLICITED: "Valid only
/// for Send and RDMA Write with immediate", which use a receive. IBTA vol 1, 9.2.3: no other
/// request has the SE bit.
constexpr bool can_be_solicited(RequestKind kind, abi::WrOpcode opcode) {
  return kind == RequestKind::kSend || opcode == abi::WrOpcode::kRdmaWriteWithImm;
}

/// Returns whether a request of this kind is complete only when its response has arrived. The
/// responder has resources for max_rd_atomic of these requests at a time, and a fenced request
/// waits for their responses.
constexpr bool wants_response(RequestKind kind) {
  const AnsweredBy answer = traits_of(kind).answer;
  return answer != AnsweredBy::kNobody && answer != AnsweredBy::kAcknowledge;
}

/// Returns whether the response to a request of this kind has data, which is stored in the WQE's
/// SGEs.
constexpr bool places_response(RequestKind kind) {
  const AnsweredBy answer = traits_of(kind).answer;
  return answer == AnsweredBy::kReadResponse || answer == AnsweredBy::kAtomicAcknowledge;
}

/// Returns the number of PSNs that a message of that length takes: at least one.
constexpr uint32_t psn_count(uint32_t length, uint32_t mtu) {
  return std::max<uint32_t>(1, (length + mtu - 1) / mtu);
}

}  // namespace rocemu::engine
