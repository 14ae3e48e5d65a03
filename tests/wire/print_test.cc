#include "wire/print.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/wire/bytes.h"
#include "wire/aeth.h"

namespace rocemu::wire {
namespace {

Packet packet_of(Opcode opcode) {
  Packet packet;
  packet.src_ip = IpAddress::from_v4(10, 7, 0, 1);
  packet.dst_ip = IpAddress::from_v4(10, 7, 0, 2);
  packet.bth = {.opcode = opcode, .dest_qpn = 0x12, .psn = Psn(256)};
  return packet;
}

TEST(Print, ASendHasItsLength) {
  const ByteVector payload(1024);
  Packet packet = packet_of(Opcode::kRcSendFirst);
  packet.payload = payload;
  EXPECT_EQ(to_string(packet), "10.7.0.1 > 10.7.0.2 RC SEND First qp=0x12 psn=256 len=1024");
}

TEST(Print, FlagsAreWordsAtTheEnd) {
  Packet packet = packet_of(Opcode::kRcSendOnly);
  packet.bth.ack_req = true;
  packet.bth.solicited = true;
  EXPECT_EQ(to_string(packet),
            "10.7.0.1 > 10.7.0.2 RC SEND Only qp=0x12 psn=256 len=0 ack_req solicited");
  packet.bth.mig_req = true;
  packet.bth.fecn = true;
  packet.bth.becn = true;
  packet.bth.pkey = 0x7fff;
  EXPECT_EQ(to_string(packet),
            "10.7.0.1 > 10.7.0.2 RC SEND Only qp=0x12 psn=256 len=0 ack_req solicited mig_req fecn "
            "becn pkey=0x7fff");
}

TEST(Print, ExtendedHeadersFollowThePsnInWireOrder) {
  const auto tail = [](const Packet& packet) {
    const std::string line = to_string(packet);
    const size_t end = line.find("psn=256");
    EXPECT_NE(end, line.npos) << line;
    return line.substr(end + sizeof "psn=256");
  };
  Packet packet = packet_of(Opcode::kXrcWriteOnlyImm);
  packet.xrceth.srqn = 0x21;
  packet.reth = {.va = 0x7f0000001000, .rkey = 0x1234, .dma_length = 3};
  const ByteVector imm = from_hex("01020304");
  std::memcpy(&packet.imm.value, imm.data(), imm.size());
  EXPECT_EQ(tail(packet), "srq=0x21 va=0x7f0000001000 rkey=0x1234 dma_len=3 imm=0x1020304 len=0");

  packet = packet_of(Opcode::kRcCompareSwap);
  packet.atomic = {.va = 0x1000, .rkey = 0x1234, .swap_add = 7, .compare = 6};
  EXPECT_EQ(tail(packet), "va=0x1000 rkey=0x1234 compare=6 swap=7");

  packet.bth.opcode = Opcode::kRcFetchAdd;
  EXPECT_EQ(tail(packet), "va=0x1000 rkey=0x1234 add=7");

  packet = packet_of(Opcode::kRcAtomicAck);
  packet.aeth = {.syndrome = ack_syndrome(), .msn = 1};
  packet.atomic_ack.original = 9;
  EXPECT_EQ(tail(packet), "ACK credits=31 msn=1 original=9");

  packet = packet_of(Opcode::kUdSendOnly);
  packet.deth = {.qkey = 0x80010000, .src_qpn = 1};
  EXPECT_EQ(tail(packet), "qkey=0x80010000 src_qp=0x1 len=0");

  packet = packet_of(Opcode::kRcSendOnlyInv);
  packet.ieth.rkey = 0x1234;
  EXPECT_EQ(tail(packet), "inv_rkey=0x1234 len=0");

  packet = packet_of(Opcode::kRcFlush);
  packet.feth = {.selectivity = 1, .placement = 2};
  EXPECT_EQ(tail(packet), "selectivity=1 placement=0x2 va=0x0 rkey=0x0 dma_len=0");
}

TEST(Print, SyndromesAreSpelled) {
  const auto text = [](uint8_t syndrome) {
    return to_string(Aeth{.syndrome = syndrome, .msn = 1});
  };
  EXPECT_EQ(text(ack_syndrome()), "ACK credits=31 msn=1");
  EXPECT_EQ(text(rnr_nak_syndrome(0)), "RNR NAK timer=655.36ms msn=1");
  EXPECT_EQ(text(rnr_nak_syndrome(1)), "RNR NAK timer=0.01ms msn=1");
  EXPECT_EQ(text(rnr_nak_syndrome(12)), "RNR NAK timer=0.64ms msn=1");
  EXPECT_EQ(text(nak_syndrome(NakCode::kPsnSequenceError)), "NAK PSN sequence error msn=1");
  EXPECT_EQ(text(nak_syndrome(NakCode::kInvalidRequest)), "NAK invalid request msn=1");
  EXPECT_EQ(text(nak_syndrome(NakCode::kRemoteAccessError)), "NAK remote access error msn=1");
  EXPECT_EQ(text(nak_syndrome(NakCode::kRemoteOperationalError)),
            "NAK remote operational error msn=1");
  EXPECT_EQ(text(0x7f), "NAK reserved code msn=1");
  EXPECT_EQ(text(0x40), "reserved syndrome=0x40 msn=1");
}

TEST(Print, Ipv6AddressesAreShort) {
  Packet packet = packet_of(Opcode::kCnp);
  packet.src_ip = *parse_ip_address("fe80::1");
  packet.dst_ip = *parse_ip_address("fe80::2");
  EXPECT_EQ(to_string(packet), "fe80::1 > fe80::2 CNP qp=0x12 psn=256");
}

TEST(Print, AnUnknownOpcodeIsGivenAsANumber) {
  EXPECT_EQ(to_string(packet_of(static_cast<Opcode>(0x15))),
            "10.7.0.1 > 10.7.0.2 unknown opcode opcode=0x15 qp=0x12 psn=256 len=0");
}

}  // namespace
}  // namespace rocemu::wire
