// The opcodes of work requests and completions, and a row for each opcode that can be posted: the
// types of QP that may post it, its contents, and the opcode of its completion. The provider
// refuses to post any other opcode, and the engine refuses to execute it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "emulator/abi/named_enum.h"
#include "emulator/abi/verbs_values.h"

namespace rocemu::abi {

/// The values of ibv_wr_opcode (IBV_WR_...). NEWER has the opcodes that the headers of rdma-core 36
/// to 44 lack.
#define ROCEMU_WR_OPCODES_AND(V, NEWER)          \
  V(kRdmaWrite, RDMA_WRITE, 0)                   \
  V(kRdmaWriteWithImm, RDMA_WRITE_WITH_IMM, 1)   \
  V(kSend, SEND, 2)                              \
  V(kSendWithImm, SEND_WITH_IMM, 3)              \
  V(kRdmaRead, RDMA_READ, 4)                     \
  V(kAtomicCmpAndSwp, ATOMIC_CMP_AND_SWP, 5)     \
  V(kAtomicFetchAndAdd, ATOMIC_FETCH_AND_ADD, 6) \
  V(kLocalInv, LOCAL_INV, 7)                     \
  V(kBindMw, BIND_MW, 8)                         \
  V(kSendWithInv, SEND_WITH_INV, 9)              \
  V(kTso, TSO, 10)                               \
  V(kDriver1, DRIVER1, 11)                       \
  NEWER(kFlush, FLUSH, 14)                       \
  NEWER(kAtomicWrite, ATOMIC_WRITE, 15)
#define ROCEMU_WR_OPCODES(V) ROCEMU_WR_OPCODES_AND(V, V)
ROCEMU_NAMED_ENUM(WrOpcode, ROCEMU_WR_OPCODES);

/// The values of ibv_wc_opcode (IBV_WC_...). NEWER has the opcodes that some headers lack.
#define ROCEMU_WC_OPCODES_AND(V, NEWER) \
  V(kSend, SEND, 0)                     \
  V(kRdmaWrite, RDMA_WRITE, 1)          \
  V(kRdmaRead, RDMA_READ, 2)            \
  V(kCompSwap, COMP_SWAP, 3)            \
  V(kFetchAdd, FETCH_ADD, 4)            \
  V(kBindMw, BIND_MW, 5)                \
  V(kLocalInv, LOCAL_INV, 6)            \
  NEWER(kFlush, FLUSH, 8)               \
  NEWER(kAtomicWrite, ATOMIC_WRITE, 9)  \
  V(kRecv, RECV, 128)                   \
  V(kRecvRdmaWithImm, RECV_RDMA_WITH_IMM, 129)
#define ROCEMU_WC_OPCODES(V) ROCEMU_WC_OPCODES_AND(V, V)
ROCEMU_NAMED_ENUM(WcOpcode, ROCEMU_WC_OPCODES);

constexpr uint32_t opcode_bit(WrOpcode opcode) {
  return 1u << static_cast<uint32_t>(opcode);
}

/// The types of QP that may post an opcode
struct Posters {
  bool rc = false;
  bool xrc_send = false;
  bool uc = false;
  bool ud = false;
};

struct SendOpcode {
  WrOpcode opcode;
  WcOpcode completion;
  Posters posters;
  bool is_local = false;       // concerns only this side: there is no packet
  bool is_dataless = false;    // transfers no data, so that a gather list has no meaning
  bool may_be_inline = false;  // "IBV_SEND_INLINE: Valid only for Send and RDMA Write"
  bool has_immediate = false;  // SendWqe::imm_data is immediate data
  bool has_key = false;        // SendWqe::imm_data is a key to invalidate
  bool is_rdma = false;        // names memory of the peer, in ibv_send_wr::wr.rdma
  bool is_atomic = false;      // names memory of the peer and operands, in ibv_send_wr::wr.atomic
  bool needs_builder = false;  // ibv_send_wr has no field for its contents: ibv_wr_post(3) only
  uint64_t capabilities = 0;   // in ibv_device_attr_ex::device_cap_flags_ex
};

inline constexpr Posters kAnyQp{.rc = true, .xrc_send = true, .uc = true, .ud = true};
inline constexpr Posters kConnectedQp{.rc = true, .xrc_send = true, .uc = true};
inline constexpr Posters kReliableQp{.rc = true, .xrc_send = true};
inline constexpr Posters kRcQp{.rc = true};

/// The table of ibv_post_send(3), with three differences. It omits opcodes that do not exist on the
/// wire (IBTA vol 1, table "OpCode field", and annex A19), such as SEND with invalidate over UC. It
/// omits opcodes that this device does not support, such as TSO. It adds ATOMIC WRITE and FLUSH for
/// RC, which are not on the page.
// clang-format off
inline constexpr SendOpcode kSendOpcodes[] = {
    {.opcode = WrOpcode::kSend, .completion = WcOpcode::kSend, .posters = kAnyQp,
     .may_be_inline = true},
    {.opcode = WrOpcode::kSendWithImm, .completion = WcOpcode::kSend, .posters = kAnyQp,
     .may_be_inline = true, .has_immediate = true},
    {.opcode = WrOpcode::kSendWithInv, .completion = WcOpcode::kSend, .posters = kReliableQp,
     .may_be_inline = true, .has_key = true},
    {.opcode = WrOpcode::kRdmaWrite, .completion = WcOpcode::kRdmaWrite, .posters = kConnectedQp,
     .may_be_inline = true, .is_rdma = true},
    {.opcode = WrOpcode::kRdmaWriteWithImm, .completion = WcOpcode::kRdmaWrite, .posters = kConnectedQp,
     .may_be_inline = true, .has_immediate = true, .is_rdma = true},
    {.opcode = WrOpcode::kRdmaRead, .completion = WcOpcode::kRdmaRead, .posters = kReliableQp,
     .is_rdma = true},
    {.opcode = WrOpcode::kAtomicCmpAndSwp, .completion = WcOpcode::kCompSwap, .posters = kReliableQp,
     .is_atomic = true},
    {.opcode = WrOpcode::kAtomicFetchAndAdd, .completion = WcOpcode::kFetchAdd, .posters = kReliableQp,
     .is_atomic = true},
    {.opcode = WrOpcode::kAtomicWrite, .completion = WcOpcode::kAtomicWrite, .posters = kRcQp,
     .may_be_inline = true, .is_rdma = true, .capabilities = uint64_t{1} << 40},
    {.opcode = WrOpcode::kFlush, .completion = WcOpcode::kFlush, .posters = kRcQp,
     .is_dataless = true, .needs_builder = true,
     .capabilities = uint64_t{1} << 38 | uint64_t{1} << 39},  // global, persistent
    {.opcode = WrOpcode::kLocalInv, .completion = WcOpcode::kLocalInv, .posters = kConnectedQp,
     .is_local = true, .is_dataless = true, .has_key = true},
    {.opcode = WrOpcode::kBindMw, .completion = WcOpcode::kBindMw, .posters = kConnectedQp,
     .is_local = true, .is_dataless = true},
};
// clang-format on

namespace send_opcode_rows {
inline constexpr auto kByOpcode = [] {
  std::array<const SendOpcode*, 32> by_opcode{};
  for (const SendOpcode& row : kSendOpcodes) by_opcode[static_cast<size_t>(row.opcode)] = &row;
  return by_opcode;
}();
}  // namespace send_opcode_rows

/// Returns the row of the opcode, or nullptr if the opcode cannot be posted; `opcode` can be any
/// number.
constexpr const SendOpcode* find_send_opcode(WrOpcode opcode) {
  const auto number = static_cast<size_t>(opcode);
  constexpr auto& kByOpcode = send_opcode_rows::kByOpcode;
  return number < kByOpcode.size() ? kByOpcode[number] : nullptr;
}

/// Returns the device_cap_flags_ex of a device that executes all opcodes.
constexpr uint64_t send_capabilities() {
  uint64_t capabilities = 0;
  for (const SendOpcode& row : kSendOpcodes) capabilities |= row.capabilities;
  return capabilities;
}

/// Returns the opcodes whose rows match the predicate, as bits.
template <class Predicate>
constexpr uint32_t opcodes_where(Predicate predicate) {
  uint32_t opcodes = 0;
  for (const SendOpcode& row : kSendOpcodes) {
    if (predicate(row)) opcodes |= opcode_bit(row.opcode);
  }
  return opcodes;
}
constexpr uint32_t opcodes_where(bool SendOpcode::*trait) {
  return opcodes_where([=](const SendOpcode& row) { return row.*trait; });
}

/// Returns the opcodes that a QP of that type may post, as bits.
constexpr uint32_t send_opcodes(QpType type) {
  constexpr auto of = [](bool Posters::*poster) {
    return opcodes_where([=](const SendOpcode& row) { return row.posters.*poster; });
  };
  constexpr uint32_t kRc = of(&Posters::rc), kXrcSend = of(&Posters::xrc_send),
                     kUc = of(&Posters::uc), kUd = of(&Posters::ud);
  switch (type) {
    case QpType::kRc:
      return kRc;
    case QpType::kXrcSend:
      return kXrcSend;
    case QpType::kUc:
      return kUc;
    case QpType::kUd:
      return kUd;
    case QpType::kXrcRecv:
      break;
  }
  return 0;
}

/// Returns whether a QP of that type executes `opcode`, which can be any number.
constexpr bool supports(QpType type, WrOpcode opcode) {
  return static_cast<uint32_t>(opcode) < 32 && (send_opcodes(type) & opcode_bit(opcode)) != 0;
}

}  // namespace rocemu::abi
