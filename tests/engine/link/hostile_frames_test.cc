// Tests truncated, changed and invented frames, for a QP in each state. The frames must neither
// crash the engine nor complete requests that were not posted. The number of frames is fixed and
// they come from seeds; the fuzzers test more.
#include <gtest/gtest.h>

#include "emulator/engine/base/random.h"
#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::QpState;
using engine::Counter;
using wire::Opcode;

constexpr int kFramesPerState = 6000;

std::vector<uint8_t> mutate(std::vector<uint8_t> bytes, engine::Random& random) {
  const uint64_t kind = random.next() % 8;
  if (kind == 0) {
    bytes.resize(random.next() % (bytes.size() + 1));
    return bytes;
  }
  if (kind == 1) bytes.resize(bytes.size() + random.next() % 5000, 0x5a);
  const uint64_t flips = kind == 2 ? 0 : 1 + random.next() % 4;
  for (uint64_t i = 0; i < flips; ++i) {
    bytes[random.next() % bytes.size()] ^= static_cast<uint8_t>(1u << random.next() % 8);
  }
  // Most frames have a correct ICRC, so that they pass the first check.
  if (random.next() % 4 != 0) wire::write_icrc(bytes);
  return bytes;
}

class HostileFrames : public testing::TestWithParam<QpState> {};

TEST_P(HostileFrames, DoNoHarm) {
  constexpr std::array kOpcodes = {
      Opcode::kRcSendFirst,   Opcode::kRcSendMiddle,  Opcode::kRcSendLast,
      Opcode::kRcSendLastImm, Opcode::kRcSendOnly,    Opcode::kRcSendOnlyImm,
      Opcode::kRcWriteOnly,   Opcode::kRcReadRequest, Opcode::kRcReadResponseOnly,
      Opcode::kRcAck,         Opcode::kRcAck,         Opcode::kRcAtomicAck,
      Opcode::kRcCompareSwap, Opcode::kRcSendOnlyInv, Opcode::kRcFlush,
      Opcode::kUdSendOnly,    Opcode::kUcSendOnly,    Opcode::kCnp};
  for (uint64_t seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    engine::Random random(seed * 100 + static_cast<uint64_t>(GetParam()));
    ScriptOptions options;
    options.state = GetParam();
    options.connection.mtu = abi::Mtu::k256;
    std::optional<Script> s;
    uint64_t posted = 0, completed = 0;
    for (int i = 0; i < kFramesPerState / 4; ++i) {
      // After a QP failed, the test continues with a new one, unless it tests failed QPs.
      if (!s || (s->app().state() == QpState::kErr && GetParam() != QpState::kErr)) {
        if (s) s->bench().log.clear();
        s.emplace(options);
        posted = completed = 0;
        if (GetParam() == QpState::kInit || GetParam() == QpState::kRtr ||
            GetParam() == QpState::kRts || GetParam() == QpState::kSqd) {
          for (; posted < 8; ++posted) s->app_posts_recv(posted, 1000);
        }
        if (GetParam() == QpState::kRts) {
          for (; posted < 16; ++posted) s->app_posts_send(posted, 300);
        }
      }
      const auto expected = s->bench().engine().snapshot().devices[0].qps[0];
      PacketSpec spec = packet(kOpcodes[random.next() % kOpcodes.size()], psn(0));
      const bool response = wire::find_opcode(spec.packet.bth.opcode)->is_response;
      const auto jitter = static_cast<uint32_t>(random.next() % 3) - 1;
      spec.packet.bth.psn = psn((response ? expected.unacked_psn : expected.expected_psn) + jitter);
      spec.packet.aeth.syndrome =
          random.next() % 2 == 0 ? uint8_t{0x1f} : static_cast<uint8_t>(random.next());
      if (wire::find_opcode(spec.packet.bth.opcode)->has_payload) {
        spec.length = random.next() % 2 == 0 ? 256 : random.next() % 600;
      }
      const auto bytes = mutate(s->frame(spec), random);
      s->wire_delivers_bytes(bytes);
      for (const Timed& entry : s->bench().log) {
        if (std::holds_alternative<engine::Completion>(entry.output)) ++completed;
        EXPECT_FALSE(std::holds_alternative<engine::ClientViolation>(entry.output));
        EXPECT_FALSE(std::holds_alternative<engine::CqFailed>(entry.output));
      }
      s->bench().log.clear();
      ASSERT_LE(completed, posted) << "frame " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(In, HostileFrames,
                         testing::Values(QpState::kReset, QpState::kInit, QpState::kRtr,
                                         QpState::kRts, QpState::kSqd, QpState::kErr),
                         [](const testing::TestParamInfo<QpState>& one) {
                           return to_string(one.param);
                         });

class HostileFramesOnUnreliable : public testing::TestWithParam<abi::QpType> {};

// Tests a receive queue and an SRQ: no WQE completes twice, and none is lost.
TEST_P(HostileFramesOnUnreliable, DoNoHarm) {
  constexpr std::array kOpcodes = {
      Opcode::kUcSendFirst, Opcode::kUcSendMiddle,   Opcode::kUcSendLast,   Opcode::kUcSendLastImm,
      Opcode::kUcSendOnly,  Opcode::kUcSendOnlyImm,  Opcode::kUcWriteFirst, Opcode::kUcWriteMiddle,
      Opcode::kUcWriteLast, Opcode::kUcWriteLastImm, Opcode::kUcWriteOnly,  Opcode::kUcWriteOnlyImm,
      Opcode::kUdSendOnly,  Opcode::kUdSendOnlyImm,  Opcode::kXrcSendOnly,  Opcode::kRcAck};
  for (const uint32_t srq_wr : {0u, 8u}) {
    engine::Random random(static_cast<uint64_t>(GetParam()) * 10 + srq_wr);
    ScriptOptions options;
    options.connection.type = GetParam();
    options.connection.mtu = abi::Mtu::k256;
    options.connection.access = abi::kAccessRemoteWrite;
    options.recv_access = abi::kAccessLocalWrite | abi::kAccessRemoteWrite;
    options.srq_wr = srq_wr;
    std::optional<Script> s;
    uint64_t posted = 0, completed = 0;
    for (int i = 0; i < kFramesPerState; ++i) {
      if (!s || s->app().state() == QpState::kErr || completed == posted) {
        if (s) s->bench().log.clear();
        s.emplace(options);
        completed = 0;
        for (posted = 0; posted < 8; ++posted) s->app_posts_recv(posted, 600);
      }
      const auto qp = s->bench().engine().snapshot().devices[0].qps[0];
      PacketSpec spec = packet(kOpcodes[random.next() % kOpcodes.size()], psn(0));
      spec.packet.bth.psn = psn(qp.expected_psn + static_cast<uint32_t>(random.next() % 8 == 0));
      spec.packet.deth = {.qkey = random.next() % 4 == 0 ? 1u : options.connection.qkey,
                          .src_qpn = 17};
      spec.length = random.next() % 2 == 0 ? 256 : random.next() % 600;
      spec.packet.reth = {.va = Endpoint::kRecvBuffer,
                          .rkey = s->app().recv_mr.rkey,
                          .dma_length = static_cast<uint32_t>(random.next() % 600)};
      s->wire_delivers_bytes(mutate(s->frame(spec), random));
      for (const Timed& entry : s->bench().log) {
        if (std::holds_alternative<engine::Completion>(entry.output)) ++completed;
        EXPECT_FALSE(std::holds_alternative<engine::TransmitFrame>(entry.output));
        EXPECT_FALSE(std::holds_alternative<engine::ClientViolation>(entry.output));
      }
      s->bench().log.clear();
      ASSERT_LE(completed, posted) << "frame " << i;
    }
    // After a reset, the SRQ must still have every WQE that has not completed.
    if (srq_wr == 0) continue;
    s->app_sets_state(QpState::kReset);
    EXPECT_EQ(s->bench().engine().snapshot().devices[0].srqs[0].posted, posted - completed);
    s->bench().log.clear();
  }
}

INSTANTIATE_TEST_SUITE_P(OfType, HostileFramesOnUnreliable,
                         testing::Values(abi::QpType::kUc, abi::QpType::kUd),
                         [](const testing::TestParamInfo<abi::QpType>& one) {
                           return one.param == abi::QpType::kUc ? "UC" : "UD";
                         });

// A good frame is truncated at every length, and each of its bits is flipped in turn, while its
// ICRC stays. The engine may accept only frames whose flipped bit the ICRC does not cover.
TEST(HostileFrames, OneFlippedBitIsCaughtByTheIcrc) {
  Script s;
  const auto good = s.frame(send_only(psn(0)).of_length(13));
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    Script one;
    one.at(0ms).app_posts_recv(1);
    auto bytes = good;
    bytes[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    one.wire_delivers_bytes(bytes);
    const size_t byte = bit / 8;
    // Not covered: the Ethernet addresses; IPv4 TOS, TTL and header checksum; the UDP checksum; BTH
    // byte 4.
    const bool masked = byte < 12 || byte == 15 || byte == 22 || byte == 24 || byte == 25 ||
                        byte == 40 || byte == 41 || byte == 46;
    bool received = false;
    for (const Timed& entry : one.bench().log) {
      received = received || std::holds_alternative<engine::Completion>(entry.output);
    }
    if (!masked) {
      EXPECT_FALSE(received) << "bit " << bit;
      EXPECT_TRUE(one.bench().log.empty()) << "bit " << bit;
    }
    one.bench().log.clear();
  }
}

}  // namespace
}  // namespace rocemu::test
