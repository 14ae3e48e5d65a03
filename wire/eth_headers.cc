#include "wire/eth_headers.h"

#include <array>
#include <cstring>

#include "wire/big_endian.h"
#include "wire/layout.h"

namespace rocemu::wire {
namespace {

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

}  // namespace

Reth parse_reth(std::span<const uint8_t, Reth::kSize> bytes) {
  const auto layout = load<RethLayout>(bytes);
  return {.va = layout.va.get(), .rkey = layout.rkey.get(), .dma_length = layout.dma_length.get()};
}

void emit(const Reth& reth, std::span<uint8_t, Reth::kSize> bytes) {
  store(
      RethLayout{.va = Be64(reth.va), .rkey = Be32(reth.rkey), .dma_length = Be32(reth.dma_length)},
      bytes);
}

Aeth parse_aeth(std::span<const uint8_t, Aeth::kSize> bytes) {
  const auto layout = load<AethLayout>(bytes);
  return {.syndrome = layout.syndrome, .msn = layout.msn.get()};
}

void emit(const Aeth& aeth, std::span<uint8_t, Aeth::kSize> bytes) {
  store(AethLayout{.syndrome = aeth.syndrome, .msn = Be24(aeth.msn)}, bytes);
}

AtomicEth parse_atomic_eth(std::span<const uint8_t, AtomicEth::kSize> bytes) {
  const auto layout = load<AtomicEthLayout>(bytes);
  return {.va = layout.va.get(),
          .rkey = layout.rkey.get(),
          .swap_add = layout.swap_add.get(),
          .compare = layout.compare.get()};
}

void emit(const AtomicEth& atomic, std::span<uint8_t, AtomicEth::kSize> bytes) {
  store(AtomicEthLayout{.va = Be64(atomic.va),
                        .rkey = Be32(atomic.rkey),
                        .swap_add = Be64(atomic.swap_add),
                        .compare = Be64(atomic.compare)},
        bytes);
}

AtomicAckEth parse_atomic_ack_eth(std::span<const uint8_t, AtomicAckEth::kSize> bytes) {
  return {.original = load<Be64>(bytes).get()};
}

void emit(const AtomicAckEth& atomic_ack, std::span<uint8_t, AtomicAckEth::kSize> bytes) {
  store(Be64(atomic_ack.original), bytes);
}

Deth parse_deth(std::span<const uint8_t, Deth::kSize> bytes) {
  const auto layout = load<DethLayout>(bytes);
  return {.qkey = layout.qkey.get(), .src_qpn = layout.src_qpn.get()};
}

void emit(const Deth& deth, std::span<uint8_t, Deth::kSize> bytes) {
  store(DethLayout{.qkey = Be32(deth.qkey), .reserved = 0, .src_qpn = Be24(deth.src_qpn)}, bytes);
}

Xrceth parse_xrceth(std::span<const uint8_t, Xrceth::kSize> bytes) {
  return {.srqn = load<XrcethLayout>(bytes).srqn.get()};
}

void emit(const Xrceth& xrceth, std::span<uint8_t, Xrceth::kSize> bytes) {
  store(XrcethLayout{.reserved = 0, .srqn = Be24(xrceth.srqn)}, bytes);
}

ImmDt parse_imm_dt(std::span<const uint8_t, ImmDt::kSize> bytes) {
  ImmDt imm;
  std::memcpy(&imm.value, bytes.data(), ImmDt::kSize);
  return imm;
}

void emit(const ImmDt& imm, std::span<uint8_t, ImmDt::kSize> bytes) {
  std::memcpy(bytes.data(), &imm.value, ImmDt::kSize);
}

Ieth parse_ieth(std::span<const uint8_t, Ieth::kSize> bytes) {
  return {.rkey = load<Be32>(bytes).get()};
}

void emit(const Ieth& ieth, std::span<uint8_t, Ieth::kSize> bytes) {
  store(Be32(ieth.rkey), bytes);
}

Feth parse_feth(std::span<const uint8_t, Feth::kSize> bytes) {
  const uint8_t bits = load<FethLayout>(bytes).selectivity_and_placement;
  return {.selectivity = static_cast<uint8_t>(bits >> 4 & 0x3),
          .placement = static_cast<uint8_t>(bits & 0xf)};
}

void emit(const Feth& feth, std::span<uint8_t, Feth::kSize> bytes) {
  const int bits = (feth.selectivity & 0x3) << 4 | (feth.placement & 0xf);
  store(FethLayout{.reserved = {}, .selectivity_and_placement = static_cast<uint8_t>(bits)}, bytes);
}

}  // namespace rocemu::wire
