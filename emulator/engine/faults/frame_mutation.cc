#include "emulator/engine/faults/frame_mutation.h"

#include <algorithm>
#include <bit>

#include "wire/big_endian.h"
#include "wire/ethernet.h"
#include "wire/ip.h"
#include "wire/udp.h"

namespace rocemu::engine::faults {
namespace {

using Field = FieldChange::Field;

/// Calls `set` with a reference to the field, which is a number, an Opcode, a Psn or a bool.
template <class Set>
void with_field(wire::Packet& packet, Field field, Set set) {
  wire::Bth& bth = packet.bth;
  switch (field) {
    case Field::kOpcode:
      return set(bth.opcode);
    case Field::kSolicited:
      return set(bth.solicited);
    case Field::kMigReq:
      return set(bth.mig_req);
    case Field::kTver:
      return set(bth.tver);
    case Field::kPkey:
      return set(bth.pkey);
    case Field::kFecn:
      return set(bth.fecn);
    case Field::kBecn:
      return set(bth.becn);
    case Field::kDestQp:
      return set(bth.dest_qpn);
    case Field::kAckReq:
      return set(bth.ack_req);
    case Field::kPsn:
      return set(bth.psn);
    case Field::kVa:
      set(packet.atomic.va);
      return set(packet.reth.va);
    case Field::kRkey:
      set(packet.atomic.rkey);
      return set(packet.reth.rkey);
    case Field::kDmaLength:
      return set(packet.reth.dma_length);
    case Field::kSyndrome:
      return set(packet.aeth.syndrome);
    case Field::kMsn:
      return set(packet.aeth.msn);
    case Field::kQkey:
      return set(packet.deth.qkey);
    case Field::kSrcQp:
      return set(packet.deth.src_qpn);
    case Field::kImmediate:
      return set(packet.imm.value);
    case Field::kInvalidateRkey:
      return set(packet.ieth.rkey);
    case Field::kSwapAdd:
      return set(packet.atomic.swap_add);
    case Field::kCompare:
      return set(packet.atomic.compare);
    case Field::kOriginal:
      return set(packet.atomic_ack.original);
    case Field::kSrq:
      return set(packet.xrceth.srqn);
    case Field::kTrafficClass:
      return set(packet.traffic_class);
    case Field::kHopLimit:
      return set(packet.hop_limit);
    case Field::kUdpSourcePort:
      return set(packet.udp_src_port);
  }
}

uint64_t new_value(uint64_t old, const FieldChange& change) {
  return change.relative ? old + change.value : change.value;
}

/// Returns the value in the form in which the field stores it: 24-bit fields in wider members stay
/// below 2^24, and the immediate value is in network byte order.
uint64_t fitting(Field field, uint64_t value) {
  switch (field) {
    case Field::kImmediate:
      return std::bit_cast<uint32_t>(wire::Be32(static_cast<uint32_t>(value)));
    case Field::kDestQp:
    case Field::kSrcQp:
    case Field::kMsn:
    case Field::kSrq:
      return value & 0xffffff;
    default:
      return value;
  }
}

}  // namespace

void change(wire::Packet& packet, const std::vector<FieldChange>& changes) {
  for (const FieldChange& change : changes) {
    with_field(packet, change.field, [&](auto& value) {
      using Value = std::remove_reference_t<decltype(value)>;
      if constexpr (std::is_same_v<Value, wire::Psn>) {
        value = wire::Psn(static_cast<uint32_t>(new_value(value.value(), change) & wire::kPsnMask));
      } else if constexpr (std::is_same_v<Value, wire::Opcode>) {
        value = static_cast<wire::Opcode>(new_value(static_cast<uint8_t>(value), change) & 0xff);
      } else if constexpr (std::is_same_v<Value, bool>) {
        value = new_value(value ? 1 : 0, change) != 0;
      } else {
        value = static_cast<Value>(fitting(change.field, new_value(value, change)));
      }
    });
  }
}

Frame frame_of(FramePool& frames, const wire::Packet& packet) {
  Frame frame = frames.allocate();
  if (wire::frame_size(packet, packet.payload.size()) > Frame::kCapacity) return {};
  frame.set_size(wire::emit_frame(packet, frame.storage()));
  return frame;
}

Frame corrupted(FramePool& frames, const Frame& frame, const Corruption& corruption,
                Random& random) {
  Frame copy = frames.allocate();  // others may refer to the original
  std::ranges::copy(frame.bytes(), copy.storage().begin());
  copy.set_size(frame.bytes().size());
  const std::span<uint8_t> bytes = copy.bytes();
  const auto turn_over = [&](uint64_t bit) {
    if (bit / 8 < bytes.size()) bytes[bit / 8] ^= static_cast<uint8_t>(1u << (7 - bit % 8));
  };
  const size_t ip_size = bytes[12] == 0x08 ? wire::Ipv4Header::kSize : wire::Ipv6Header::kSize;
  const uint64_t begin = 8 * (wire::EthernetHeader::kSize + ip_size + wire::UdpHeader::kSize);
  for (const uint32_t bit : corruption.bits) turn_over(begin + bit);
  for (uint32_t i = 0; i < corruption.random_bits; ++i) {
    turn_over(begin + random.next() % (8 * bytes.size() - begin));
  }
  if (corruption.icrc) {
    for (uint8_t& byte : bytes.last(4)) byte = static_cast<uint8_t>(~byte);
  }
  return copy;
}

}  // namespace rocemu::engine::faults
