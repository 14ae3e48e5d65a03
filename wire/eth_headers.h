// The extended transport headers (ETH in IBTA's words; nothing to do with Ethernet). Which packet
// has which is in opcode.h; what an AETH's syndrome means is in aeth.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rocemu::wire {

// RDMA: READ requests, the first packet of a WRITE, FLUSH, ATOMIC WRITE.
//  +---------------------------------------------------------------+
//  |                     virtual address (64)                      |
//  |                                                               |
//  +---------------------------------------------------------------+
//  |                            R_Key                              |
//  +---------------------------------------------------------------+
//  |                          DMA length                           |
//  +---------------------------------------------------------------+
struct Reth {
  static constexpr size_t kSize = 16;
  uint64_t va = 0;
  uint32_t rkey = 0;
  uint32_t dma_length = 0;
  friend constexpr bool operator==(const Reth&, const Reth&) = default;
};

// Acknowledgements and READ responses other than Middle.
//  +---------------+-----------------------------------------------+
//  |   syndrome    |                     MSN                       |
//  +---------------+-----------------------------------------------+
struct Aeth {
  static constexpr size_t kSize = 4;
  uint8_t syndrome = 0;
  uint32_t msn = 0;  // 24 bits
  friend constexpr bool operator==(const Aeth&, const Aeth&) = default;
};

// Compare-and-swap and fetch-and-add requests.
//  +---------------------------------------------------------------+
//  |                     virtual address (64)                      |
//  |                                                               |
//  +---------------------------------------------------------------+
//  |                            R_Key                              |
//  +---------------------------------------------------------------+
//  |                    swap or add data (64)                      |
//  |                                                               |
//  +---------------------------------------------------------------+
//  |                      compare data (64)                        |
//  |                                                               |
//  +---------------------------------------------------------------+
struct AtomicEth {
  static constexpr size_t kSize = 28;
  uint64_t va = 0;
  uint32_t rkey = 0;
  uint64_t swap_add = 0;
  uint64_t compare = 0;
  friend constexpr bool operator==(const AtomicEth&, const AtomicEth&) = default;
};

// The value an atomic found, 64 bits.
struct AtomicAckEth {
  static constexpr size_t kSize = 8;
  uint64_t original = 0;
  friend constexpr bool operator==(const AtomicAckEth&, const AtomicAckEth&) = default;
};

// Datagrams.
//  +---------------------------------------------------------------+
//  |                            Q_Key                              |
//  +---------------+-----------------------------------------------+
//  |   reserved    |                  source QP                    |
//  +---------------+-----------------------------------------------+
struct Deth {
  static constexpr size_t kSize = 8;
  uint32_t qkey = 0;
  uint32_t src_qpn = 0;  // 24 bits
  friend constexpr bool operator==(const Deth&, const Deth&) = default;
};

// XRC requests.
//  +---------------+-----------------------------------------------+
//  |   reserved    |                  XRC SRQ                      |
//  +---------------+-----------------------------------------------+
struct Xrceth {
  static constexpr size_t kSize = 4;
  uint32_t srqn = 0;  // 24 bits
  friend constexpr bool operator==(const Xrceth&, const Xrceth&) = default;
};

// Immediate data. The verbs give and take it in network byte order (ibv_send_wr.imm_data,
// ibv_wc.imm_data), so `value` holds the four bytes as they are on the wire: memcpy, no swap.
struct ImmDt {
  static constexpr size_t kSize = 4;
  uint32_t value = 0;  // network order
  friend constexpr bool operator==(const ImmDt&, const ImmDt&) = default;
};

// SEND with invalidate: the R_Key to invalidate.
struct Ieth {
  static constexpr size_t kSize = 4;
  uint32_t rkey = 0;
  friend constexpr bool operator==(const Ieth&, const Ieth&) = default;
};

// FLUSH.
//  +-------------------------------------------------------+---+---+
//  |                      reserved (26)                    |SEL|PLT|
//  +-------------------------------------------------------+---+---+
//  SEL selectivity level (2 bits), PLT placement type (4 bits)
struct Feth {
  static constexpr size_t kSize = 4;
  uint8_t selectivity = 0;
  uint8_t placement = 0;

  // Values of `selectivity`: the range that the RETH names, or all that its R_Key opens.
  static constexpr uint8_t kRange = 0;
  static constexpr uint8_t kRegion = 1;
  // Bits of `placement`: what is written is to be visible to all, or to outlive a power failure.
  static constexpr uint8_t kGlobalVisibility = 1;
  static constexpr uint8_t kPersistence = 2;

  friend constexpr bool operator==(const Feth&, const Feth&) = default;
};

Reth parse_reth(std::span<const uint8_t, Reth::kSize> bytes);
Aeth parse_aeth(std::span<const uint8_t, Aeth::kSize> bytes);
AtomicEth parse_atomic_eth(std::span<const uint8_t, AtomicEth::kSize> bytes);
AtomicAckEth parse_atomic_ack_eth(std::span<const uint8_t, AtomicAckEth::kSize> bytes);
Deth parse_deth(std::span<const uint8_t, Deth::kSize> bytes);
Xrceth parse_xrceth(std::span<const uint8_t, Xrceth::kSize> bytes);
ImmDt parse_imm_dt(std::span<const uint8_t, ImmDt::kSize> bytes);
Ieth parse_ieth(std::span<const uint8_t, Ieth::kSize> bytes);
Feth parse_feth(std::span<const uint8_t, Feth::kSize> bytes);

void emit(const Reth& reth, std::span<uint8_t, Reth::kSize> bytes);
void emit(const Aeth& aeth, std::span<uint8_t, Aeth::kSize> bytes);
void emit(const AtomicEth& atomic, std::span<uint8_t, AtomicEth::kSize> bytes);
void emit(const AtomicAckEth& atomic_ack, std::span<uint8_t, AtomicAckEth::kSize> bytes);
void emit(const Deth& deth, std::span<uint8_t, Deth::kSize> bytes);
void emit(const Xrceth& xrceth, std::span<uint8_t, Xrceth::kSize> bytes);
void emit(const ImmDt& imm, std::span<uint8_t, ImmDt::kSize> bytes);
void emit(const Ieth& ieth, std::span<uint8_t, Ieth::kSize> bytes);
void emit(const Feth& feth, std::span<uint8_t, Feth::kSize> bytes);

}  // namespace rocemu::wire
