// Tests which rules for frames see packets to QP 1. The connection manager's MADs are UD SENDs on
// the wire (IBTA vol 1, 13.5.1), and a rule for a program's SENDs must not match them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>

#include "tests/engine/faults/rules.h"
#include "tests/support/script.h"
#include "wire/cm/mad.h"

namespace rocemu::test {
namespace {

/// A datagram from the peer's QP 1 to the device's QP 1. It is a MAD only if it has a MAD's size.
PacketSpec to_general_services(size_t size) {
  PacketSpec spec = packet(wire::Opcode::kUdSendOnly, psn(0)).to_qp(wire::kGsiQpn).of_length(size);
  spec.packet.deth = {.qkey = wire::kGsiQkey, .src_qpn = wire::kGsiQpn};
  return spec;
}

/// Returns whether `rule` acts on a datagram of `size` bytes from the peer's QP 1 to the device's
/// QP 1.
bool sees(const std::string& rule, size_t size) {
  ScriptOptions options;
  options.outside = true;
  Script s(options);
  add_rules(s.bench(), "{" + rule + ", do: drop}");
  s.wire_delivers(to_general_services(size));
  const auto is_fired = [](const auto& timed) {
    return std::holds_alternative<engine::RuleFired>(timed.output);
  };
  const bool found = std::ranges::any_of(s.bench().log, is_fired);
  s.bench().log.clear();
  return found;
}

TEST(MadFault, ARuleForFramesIsNotForQp1) {
  for (const std::string rule :
       {"on: frame", "on: frame, opcode: SEND", "on: frame, opcode: REQUEST",
        "on: frame, opcode: UD_SEND_ONLY", "on: frame, opcode: SEND_ONLY", "on: frame, psn_num: 0",
        "on: frame, from: outside", "on: frame, size: 256", "on: frame, dest_qp: 2-",
        "on: frame, qp_num: 17", "on: frame, transport: RC", "on: frame, transport: UC"}) {
    EXPECT_FALSE(sees(rule, wire::kMadSize)) << rule;
    EXPECT_FALSE(sees(rule, 64)) << rule;
  }
}

TEST(MadFault, ARuleThatSelectsQp1OrItsTransportIsForQp1) {
  for (const std::string rule :
       {"on: frame, transport: UD", "on: frame, transport: UD, opcode: SEND",
        "on: frame, dest_qp: 1", "on: frame, dest_qp: 0-1", "on: frame, qp_num: 1",
        "on: frame, opcode: SEND, dest_qp: [1, 17]"}) {
    EXPECT_TRUE(sees(rule, wire::kMadSize)) << rule;
    EXPECT_TRUE(sees(rule, 64)) << rule;
  }
}

// A REQ is attribute 0x0010 (IBTA vol 1, table 106); an empty MAD does not belong to the connection
// manager.
TEST(MadFault, ARuleForTheConnectionManagerIsForItsMadsOnly) {
  EXPECT_FALSE(sees("on: cm", wire::kMadSize));
  EXPECT_FALSE(sees("on: cm", 64));
}

TEST(MadFault, AProgramsDatagramsAreStillSends) {
  ScriptOptions options;
  options.connection.type = abi::QpType::kUd;
  Script s(options);
  add_rules(s.bench(), "{on: frame, opcode: SEND, nth: 1, do: drop}");
  const uint32_t ah = s.client().create_ah(s.app().pd, address_vector(s.peer_ip(), 0));
  s.app_posts({.wr_id = 1, .sges = {s.app().send_sge(8)}, .ah = ah, .remote_qpn = 2})
      .expect({fired(), completion(1)});
}

}  // namespace
}  // namespace rocemu::test
