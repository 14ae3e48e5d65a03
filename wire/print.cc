#include "wire/print.h"

#include <cinttypes>
#include <cstdio>

#include "wire/aeth.h"
#include "wire/big_endian.h"
#include "wire/cm/cm_print.h"
#include "wire/layout.h"
#include "wire/line.h"

namespace rocemu::wire {
namespace {

std::string_view nak_name(uint8_t code) {
  switch (static_cast<NakCode>(code)) {
    case NakCode::kPsnSequenceError:
      return "NAK PSN sequence error";
    case NakCode::kInvalidRequest:
      return "NAK invalid request";
    case NakCode::kRemoteAccessError:
      return "NAK remote access error";
    case NakCode::kRemoteOperationalError:
      return "NAK remote operational error";
    case NakCode::kInvalidRdRequest:
      return "NAK invalid RD request";
  }
  return "NAK reserved code";
}

// Returns a time with two decimals: all RNR timers are multiples of a hundredth of a millisecond.
std::string milliseconds(uint32_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%" PRIu32 ".%02" PRIu32 "ms", ns / 1'000'000,
                ns / 10'000 % 100);
  return text;
}

void append_extended_header(ExtendedHeader header, const Packet& packet, Line& line) {
  switch (header) {
    case ExtendedHeader::kXrceth:
      line.hex("srq", packet.xrceth.srqn);
      return;
    case ExtendedHeader::kDeth:
      line.hex("qkey", packet.deth.qkey).hex("src_qp", packet.deth.src_qpn);
      return;
    case ExtendedHeader::kFeth:
      line.decimal("selectivity", packet.feth.selectivity).hex("placement", packet.feth.placement);
      return;
    case ExtendedHeader::kReth:
      line.hex("va", packet.reth.va)
          .hex("rkey", packet.reth.rkey)
          .decimal("dma_len", packet.reth.dma_length);
      return;
    case ExtendedHeader::kAtomicEth:
      line.hex("va", packet.atomic.va).hex("rkey", packet.atomic.rkey);
      if (find_opcode(packet.bth.opcode)->operation == Operation::kFetchAdd) {
        line.decimal("add", packet.atomic.swap_add);
      } else {
        line.decimal("compare", packet.atomic.compare).decimal("swap", packet.atomic.swap_add);
      }
      return;
    case ExtendedHeader::kAeth:
      line.word(to_string(packet.aeth));
      return;
    case ExtendedHeader::kAtomicAckEth:
      line.decimal("original", packet.atomic_ack.original);
      return;
    case ExtendedHeader::kImmDt: {
      std::array<uint8_t, ImmDt::kSize> bytes;
      emit(packet.imm, bytes);
      line.hex("imm", load<Be32>(bytes).get());
      return;
    }
    case ExtendedHeader::kIeth:
      line.hex("inv_rkey", packet.ieth.rkey);
      return;
    case ExtendedHeader::kCnpReserved:
      return;
  }
}

void append_mad(std::span<const uint8_t> payload, Line& line) {
  const auto mad = parse_cm_mad(payload);
  line.word(mad ? to_string(*mad) : to_string(parse_mad_header(payload.first<MadHeader::kSize>())));
}

}  // namespace

std::string hexadecimal(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%" PRIx64, value);
  return text;
}

std::string to_string(const Aeth& aeth) {
  Line line("");
  const uint8_t detail = aeth_detail(aeth.syndrome);
  switch (aeth_kind(aeth.syndrome)) {
    case AethKind::kAck:
      line.word("ACK").decimal("credits", detail);
      break;
    case AethKind::kRnrNak:
      line.word("RNR NAK timer=" + milliseconds(kRnrTimerNs[detail]));
      break;
    case AethKind::kNak:
      line.word(nak_name(detail));
      break;
    case AethKind::kReserved:
      line.word("reserved").hex("syndrome", aeth.syndrome);
      break;
  }
  return line.decimal("msn", aeth.msn).take();
}

std::string to_string(const Packet& packet) {
  const Bth& bth = packet.bth;
  const OpcodeInfo* info = find_opcode(bth.opcode);

  Line line(to_string(packet.src_ip) + " > " + to_string(packet.dst_ip));
  line.word(name(bth.opcode));
  if (info == nullptr) line.hex("opcode", static_cast<uint8_t>(bth.opcode));
  line.hex("qp", bth.dest_qpn).decimal("psn", bth.psn.value());
  if (info != nullptr) {
    for (const ExtendedHeader header : info->headers) append_extended_header(header, packet, line);
  }
  if (info == nullptr || info->has_payload) line.decimal("len", packet.payload.size());
  if (bth.dest_qpn == kGsiQpn && packet.payload.size() == kMadSize)
    append_mad(packet.payload, line);
  line.flag(bth.ack_req, "ack_req")
      .flag(bth.solicited, "solicited")
      .flag(bth.mig_req, "mig_req")
      .flag(bth.fecn, "fecn")
      .flag(bth.becn, "becn");
  if (bth.pkey != kDefaultPkey) line.hex("pkey", bth.pkey);
  return line.take();
}

}  // namespace rocemu::wire
