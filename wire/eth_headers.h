// The extended transport headers (ETH in IBTA's words; not related to Ethernet), between the BTH
// and the payload. opcode.h has the headers of each packet; aeth.h the meaning of an AETH's
// syndrome.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "wire/big_endian.h"
#include "wire/layout.h"

namespace rocemu::wire {

// RETH: in READ requests, the first packet of a WRITE, FLUSH and ATOMIC WRITE.
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

// AETH: in acknowledgements, and in READ responses other than Middle.
//  +---------------+-----------------------------------------------+
//  |   syndrome    |                     MSN                       |
//  +---------------+-----------------------------------------------+
struct Aeth {
  static constexpr size_t kSize = 4;
  uint8_t syndrome = 0;
  uint32_t msn = 0;  // 24 bits
  friend constexpr bool operator==(const Aeth&, const Aeth&) = default;
};

// AtomicETH: in compare-and-swap and fetch-and-add requests.
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

// AtomicAckETH: the original value that an atomic returns, 64 bits
struct AtomicAckEth {
  static constexpr size_t kSize = 8;
  uint64_t original = 0;
  friend constexpr bool operator==(const AtomicAckEth&, const AtomicAckEth&) = default;
};

// DETH: in datagrams.
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

// XRCETH: in XRC requests.
//  +---------------+-----------------------------------------------+
//  |   reserved    |                  XRC SRQ                      |
//  +---------------+-----------------------------------------------+
struct Xrceth {
  static constexpr size_t kSize = 4;
  uint32_t srqn = 0;  // 24 bits
  friend constexpr bool operator==(const Xrceth&, const Xrceth&) = default;
};

// ImmDt: immediate data. Verbs pass it in network byte order (ibv_send_wr.imm_data,
// ibv_wc.imm_data), so `value` contains the four bytes in wire order: they are copied, not swapped.
struct ImmDt {
  static constexpr size_t kSize = 4;
  uint32_t value = 0;  // network order
  friend constexpr bool operator==(const ImmDt&, const ImmDt&) = default;
};

// IETH: the R_Key that a SEND with invalidate invalidates.
struct Ieth {
  static constexpr size_t kSize = 4;
  uint32_t rkey = 0;
  friend constexpr bool operator==(const Ieth&, const Ieth&) = default;
};

// FETH: in FLUSH requests.
//  +-------------------------------------------------------+---+---+
//  |                      reserved (26)                    |SEL|PLT|
//  +-------------------------------------------------------+---+---+
//  SEL selectivity level (2 bits), PLT placement type (4 bits)
struct Feth {
  static constexpr size_t kSize = 4;
  uint8_t selectivity = 0;
  uint8_t placement = 0;

  // Values of `selectivity`: the range that the RETH names, or the whole region of its R_Key.
  static constexpr uint8_t kRange = 0;
  static constexpr uint8_t kRegion = 1;
  // Bits of `placement`: written data must be visible to all, or survive a power failure.
  static constexpr uint8_t kGlobalVisibility = 1;
  static constexpr uint8_t kPersistence = 2;

  friend constexpr bool operator==(const Feth&, const Feth&) = default;
};

// The bytes of a CNP in place of these headers (annex A17), which are zero.
struct Cnp {
  static constexpr size_t kSize = 16;
  friend constexpr bool operator==(const Cnp&, const Cnp&) = default;
};

// A row for each header: its enumerator, its type, its place in a packet, its name in functions and
// in errors for truncated packets.
#define ROCEMU_EXTENDED_HEADERS(H)                           \
  H(kXrceth, Xrceth, xrceth, xrceth)                         \
  H(kDeth, Deth, deth, deth)                                 \
  H(kFeth, Feth, feth, feth)                                 \
  H(kReth, Reth, reth, reth)                                 \
  H(kAtomicEth, AtomicEth, atomic, atomic_eth)               \
  H(kAeth, Aeth, aeth, aeth)                                 \
  H(kAtomicAckEth, AtomicAckEth, atomic_ack, atomic_ack_eth) \
  H(kImmDt, ImmDt, imm, imm_dt)                              \
  H(kIeth, Ieth, ieth, ieth)                                 \
  H(kCnpReserved, Cnp, cnp, cnp)

#define ROCEMU_HEADER_ENUMERATOR(header, Type, member, name) header,
enum class ExtendedHeader : uint8_t { ROCEMU_EXTENDED_HEADERS(ROCEMU_HEADER_ENUMERATOR) };
#undef ROCEMU_HEADER_ENUMERATOR

// All extended headers. Only those in the row of the packet's opcode are on the wire; the values of
// the others have no meaning.
#define ROCEMU_HEADER_MEMBER(header, Type, member, name) Type member{};
struct ExtendedHeaders {
  ROCEMU_EXTENDED_HEADERS(ROCEMU_HEADER_MEMBER)
};
#undef ROCEMU_HEADER_MEMBER

constexpr size_t header_size(ExtendedHeader header) {
#define ROCEMU_HEADER_SIZE(header, Type, member, name) \
  case ExtendedHeader::header:                         \
    return Type::kSize;
  switch (header) { ROCEMU_EXTENDED_HEADERS(ROCEMU_HEADER_SIZE) }
#undef ROCEMU_HEADER_SIZE
  return 0;
}

// ---- Bytes ----

namespace layouts {

struct RethLayout {
  Be64 va;
  Be32 rkey;
  Be32 dma_length;
};
static_assert(sizeof(RethLayout) == Reth::kSize && alignof(RethLayout) == 1);

struct AethLayout {
  uint8_t syndrome;
  Be24 msn;
};
static_assert(sizeof(AethLayout) == Aeth::kSize && alignof(AethLayout) == 1);

struct AtomicEthLayout {
  Be64 va;
  Be32 rkey;
  Be64 swap_add;
  Be64 compare;
};
static_assert(sizeof(AtomicEthLayout) == AtomicEth::kSize && alignof(AtomicEthLayout) == 1);

struct DethLayout {
  Be32 qkey;
  uint8_t reserved;
  Be24 src_qpn;
};
static_assert(sizeof(DethLayout) == Deth::kSize && alignof(DethLayout) == 1);

struct XrcethLayout {
  uint8_t reserved;
  Be24 srqn;
};
static_assert(sizeof(XrcethLayout) == Xrceth::kSize && alignof(XrcethLayout) == 1);

struct FethLayout {
  std::array<uint8_t, 3> reserved;
  uint8_t selectivity_and_placement;
};
static_assert(sizeof(FethLayout) == Feth::kSize && alignof(FethLayout) == 1);

}  // namespace layouts

inline Reth parse_reth(std::span<const uint8_t, Reth::kSize> bytes) {
  const auto layout = load<layouts::RethLayout>(bytes);
  return {.va = layout.va.get(), .rkey = layout.rkey.get(), .dma_length = layout.dma_length.get()};
}

inline void emit(const Reth& reth, std::span<uint8_t, Reth::kSize> bytes) {
  store(
      layouts::RethLayout{
          .va = Be64(reth.va), .rkey = Be32(reth.rkey), .dma_length = Be32(reth.dma_length)},
      bytes);
}

inline Aeth parse_aeth(std::span<const uint8_t, Aeth::kSize> bytes) {
  const auto layout = load<layouts::AethLayout>(bytes);
  return {.syndrome = layout.syndrome, .msn = layout.msn.get()};
}

inline void emit(const Aeth& aeth, std::span<uint8_t, Aeth::kSize> bytes) {
  store(layouts::AethLayout{.syndrome = aeth.syndrome, .msn = Be24(aeth.msn)}, bytes);
}

inline AtomicEth parse_atomic_eth(std::span<const uint8_t, AtomicEth::kSize> bytes) {
  const auto layout = load<layouts::AtomicEthLayout>(bytes);
  return {.va = layout.va.get(),
          .rkey = layout.rkey.get(),
          .swap_add = layout.swap_add.get(),
          .compare = layout.compare.get()};
}

inline void emit(const AtomicEth& atomic, std::span<uint8_t, AtomicEth::kSize> bytes) {
  store(layouts::AtomicEthLayout{.va = Be64(atomic.va),
                                 .rkey = Be32(atomic.rkey),
                                 .swap_add = Be64(atomic.swap_add),
                                 .compare = Be64(atomic.compare)},
        bytes);
}

inline AtomicAckEth parse_atomic_ack_eth(std::span<const uint8_t, AtomicAckEth::kSize> bytes) {
  return {.original = load<Be64>(bytes).get()};
}

inline void emit(const AtomicAckEth& atomic_ack, std::span<uint8_t, AtomicAckEth::kSize> bytes) {
  store(Be64(atomic_ack.original), bytes);
}

inline Deth parse_deth(std::span<const uint8_t, Deth::kSize> bytes) {
  const auto layout = load<layouts::DethLayout>(bytes);
  return {.qkey = layout.qkey.get(), .src_qpn = layout.src_qpn.get()};
}

inline void emit(const Deth& deth, std::span<uint8_t, Deth::kSize> bytes) {
  store(layouts::DethLayout{.qkey = Be32(deth.qkey), .reserved = 0, .src_qpn = Be24(deth.src_qpn)},
        bytes);
}

inline Xrceth parse_xrceth(std::span<const uint8_t, Xrceth::kSize> bytes) {
  return {.srqn = load<layouts::XrcethLayout>(bytes).srqn.get()};
}

inline void emit(const Xrceth& xrceth, std::span<uint8_t, Xrceth::kSize> bytes) {
  store(layouts::XrcethLayout{.reserved = 0, .srqn = Be24(xrceth.srqn)}, bytes);
}

inline ImmDt parse_imm_dt(std::span<const uint8_t, ImmDt::kSize> bytes) {
  ImmDt imm;
  std::memcpy(&imm.value, bytes.data(), ImmDt::kSize);
  return imm;
}

inline void emit(const ImmDt& imm, std::span<uint8_t, ImmDt::kSize> bytes) {
  std::memcpy(bytes.data(), &imm.value, ImmDt::kSize);
}

inline Ieth parse_ieth(std::span<const uint8_t, Ieth::kSize> bytes) {
  return {.rkey = load<Be32>(bytes).get()};
}

inline void emit(const Ieth& ieth, std::span<uint8_t, Ieth::kSize> bytes) {
  store(Be32(ieth.rkey), bytes);
}

inline Feth parse_feth(std::span<const uint8_t, Feth::kSize> bytes) {
  const uint8_t bits = load<layouts::FethLayout>(bytes).selectivity_and_placement;
  return {.selectivity = static_cast<uint8_t>(bits >> 4 & 0x3),
          .placement = static_cast<uint8_t>(bits & 0xf)};
}

inline void emit(const Feth& feth, std::span<uint8_t, Feth::kSize> bytes) {
  const int bits = (feth.selectivity & 0x3) << 4 | (feth.placement & 0xf);
  store(
      layouts::FethLayout{.reserved = {}, .selectivity_and_placement = static_cast<uint8_t>(bits)},
      bytes);
}

inline Cnp parse_cnp(std::span<const uint8_t, Cnp::kSize>) {
  return {};
}

inline void emit(const Cnp&, std::span<uint8_t, Cnp::kSize> bytes) {
  std::ranges::fill(bytes, uint8_t{0});
}

}  // namespace rocemu::wire
