// Tests how the requester divides messages into packets (IBTA vol 1, 9.7.3, 9.2.1 to 9.2.8).
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::Mtu;
using abi::QpState;
using abi::WcStatus;
using abi::WrOpcode;

struct Cut {
  Mtu mtu;
  uint32_t size;
};

class Segmentation : public testing::TestWithParam<Cut> {};

// IBTA vol 1, 9.7.4.1.6 (length): all packets except the last have exactly the path MTU. AckReq and
// SE are only on the last packet, and the PSN increases by one.
TEST_P(Segmentation, CutsAMessageIntoFullPacketsAndARest) {
  const auto [mtu, size] = GetParam();
  const uint32_t mtu_size = abi::mtu_bytes(mtu);
  const uint32_t packets = std::max(1u, (size + mtu_size - 1) / mtu_size);
  const auto message = pattern(size);
  for (const bool with_imm : {false, true}) {
    for (const bool solicited : {false, true}) {
      ScriptOptions options;
      options.connection.mtu = mtu;
      options.connection.sq_psn = 100;
      Script s(options);
      s.app().fill_send_buffer(message);

      std::vector<Expected> expected;
      for (uint32_t i = 0; i < packets; ++i) {
        const uint32_t begin = i * mtu_size;
        const uint32_t end = std::min(size, begin + mtu_size);
        const wire::Psn n = psn(100 + i);
        const bool last = i + 1 == packets;
        PacketSpec spec = !last    ? (i == 0 ? send_first(n) : send_middle(n))
                          : i == 0 ? (with_imm ? send_only_imm(n, 0x01020304) : send_only(n))
                                   : (with_imm ? send_last_imm(n, 0x01020304) : send_last(n));
        if (last && solicited) spec = spec.solicited();
        expected.push_back(spec.with({message.begin() + begin, message.begin() + end}));
      }
      s.at(0ms)
          .app_posts({.wr_id = 1,
                      .opcode = with_imm ? WrOpcode::kSendWithImm : WrOpcode::kSend,
                      .flags = abi::kSendSignaled | (solicited ? abi::kSendSolicited : 0u),
                      .imm = 0x01020304,
                      .sges = {s.app().send_sge(size)}})
          .expect_list(expected);
      s.at(1ms)
          .wire_delivers(ack(psn(100 + packets - 1)).with_msn(1))
          .expect({completion(1).wqe_count(1)});
    }
  }
}

std::vector<Cut> all_cuts() {
  std::vector<Cut> cuts;
  for (const Mtu mtu : {Mtu::k256, Mtu::k512, Mtu::k1024, Mtu::k2048, Mtu::k4096}) {
    const uint32_t size = abi::mtu_bytes(mtu);
    for (const uint32_t bytes : {0u, 1u, 2u, 3u, 4u, size - 1, size, size + 1, 3 * size + 5}) {
      cuts.push_back({mtu, bytes});
    }
  }
  return cuts;
}

INSTANTIATE_TEST_SUITE_P(AtEveryPathMtu, Segmentation, testing::ValuesIn(all_cuts()),
                         [](const testing::TestParamInfo<Cut>& cut) {
                           return "Mtu" + std::to_string(abi::mtu_bytes(cut.param.mtu)) + "Size" +
                                  std::to_string(cut.param.size);
                         });

// IBTA vol 1, 9.2.3: PadCnt bytes after the payload align the packet to 4 bytes. They are zero on
// the wire.
TEST(Requester, PadsWithZeros) {
  Script s;
  s.app().fill_send_buffer({1, 2, 3, 4, 5});
  s.at(0ms).app_posts_send(1, 5);
  ASSERT_EQ(s.bench().log.size(), 1u);
  const auto& sent = std::get<engine::TransmitFrame>(s.bench().log[0].output);
  const auto bytes = sent.frame.bytes();
  const auto parsed = wire::parse_frame(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->bth.pad_count, 3);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(bytes[bytes.size() - 4 - 3 + i], 0);
  s.expect({send_only(psn(0)).with({1, 2, 3, 4, 5})});
}

TEST(Requester, SendsTheSameOverIpv6) {
  ScriptOptions options;
  options.ipv6 = true;
  Script s(options);
  s.at(0ms).app_posts_send(1, 1500).expect(
      {send_first(psn(0)).of_length(1024), send_last(psn(1)).of_length(476)});
  s.at(1ms).wire_delivers(ack(psn(1))).expect({completion(1)});
}

// IBTA vol 1, 9.7.1: PSNs are 24 bits and wrap.
TEST(Requester, WrapsThePsnWithinAMessage) {
  ScriptOptions options;
  options.connection.sq_psn = 0xfffffe;
  Script s(options);
  s.at(0ms).app_posts_send(1, 4096).expect({send_first(psn(0xfffffe)), send_middle(psn(0xffffff)),
                                            send_middle(psn(0)), send_last(psn(1))});
  s.at(1ms).app_posts_send(2).expect({send_only(psn(2))});
  s.at(2ms).wire_delivers(ack(psn(1))).expect({completion(1)});
  s.at(3ms).wire_delivers(ack(psn(2))).expect({completion(2)});
}

TEST(Requester, GivesEachMessageThePsnsBehindTheOneBefore) {
  Script s;
  s.at(0ms).app_posts_send(1, 0).expect({send_only(psn(0)).with({})});
  s.at(0ms).app_posts_send(2, 2048).expect({send_first(psn(1)), send_last(psn(2))});
  s.at(0ms).app_posts_send(3, 1024).expect({send_only(psn(3)).of_length(1024)});
  s.at(1ms)
      .wire_delivers(ack(psn(3)).with_msn(3))
      .expect({completion(1), completion(2), completion(3)});
}

// A SEND with more packets than a burst and than one engine step can send.
TEST(Requester, SendsALongMessageInOrder) {
  ScriptOptions options;
  options.connection.mtu = Mtu::k256;
  options.buffer_size = 256 * 1000;
  Script s(options);
  std::vector<Expected> expected = {send_first(psn(0))};
  for (uint32_t i = 1; i < 999; ++i) expected.push_back(send_middle(psn(i)).of_length(256));
  expected.push_back(send_last(psn(999)).of_length(256));
  s.at(0ms).app_posts_send(1, 256 * 1000).expect_list(expected);
  s.at(1ms).wire_delivers(ack(psn(999))).expect({completion(1)});
}

TEST(Requester, GathersTheListInOrder) {
  Script s;
  const auto bytes = pattern(600);
  s.app().fill_send_buffer(bytes);
  std::vector<uint8_t> message(404);
  std::copy_n(bytes.begin() + 500, 3, message.begin());
  std::copy_n(bytes.begin(), 400, message.begin() + 3);
  message.back() = bytes[599];
  s.at(0ms)
      .app_posts(
          {.wr_id = 1,
           .sges = {s.app().send_sge(3, 500), s.app().send_sge(400), s.app().send_sge(1, 599)}})
      .expect({send_only(psn(0)).with(message)});
  s.at(1ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

TEST(Requester, CutsAGatheredMessageAtThePathMtuNotAtTheListsEntries) {
  ScriptOptions options;
  options.connection.mtu = Mtu::k256;
  Script s(options);
  const auto bytes = pattern(700);
  s.app().fill_send_buffer(bytes);
  s.at(0ms)
      .app_posts({.wr_id = 1,
                  .sges = {s.app().send_sge(255), s.app().send_sge(2, 255),
                           s.app().send_sge(300, 257), s.app().send_sge(143, 557)}})
      .expect({send_first(psn(0)).with({bytes.begin(), bytes.begin() + 256}),
               send_middle(psn(1)).with({bytes.begin() + 256, bytes.begin() + 512}),
               send_last(psn(2)).with({bytes.begin() + 512, bytes.end()})});
  s.at(1ms).wire_delivers(ack(psn(2))).expect({completion(1)});
}

// IBTA vol 1, 10.7.2.2: a data segment of length 0 contains no bytes, so its key is not checked.
TEST(Requester, IgnoresTheKeysOfEmptyEntries) {
  Script s;
  s.app().fill_send_buffer({1, 2, 3});
  const abi::Sge nowhere = {.address = 0xdead, .length = 0, .lkey = 0xffffffff};
  s.at(0ms)
      .app_posts(
          {.wr_id = 1, .sges = {nowhere, s.app().send_sge(2), nowhere, s.app().send_sge(1, 2)}})
      .expect({send_only(psn(0)).with({1, 2, 3})});
  s.at(0ms).app_posts({.wr_id = 2, .sges = {nowhere}}).expect({send_only(psn(1)).with({})});
  s.at(0ms).app_posts({.wr_id = 3}).expect({send_only(psn(2)).with({})});
  s.at(1ms).wire_delivers(ack(psn(2))).expect({completion(1), completion(2), completion(3)});
}

// ibv_post_send(3): with IBV_SEND_INLINE "the buffer can be reused immediately after the call
// returns", "the L_Key will not be checked".
TEST(Requester, KeepsInlineDataOverRetransmissions) {
  Script s;
  std::vector<uint8_t> data = {9, 8, 7, 6, 5};
  s.app().fill_send_buffer(data);
  s.at(0ms)
      .app_posts({.wr_id = 1, .flags = abi::kSendSignaled | abi::kSendInline, .inline_data = data})
      .expect({send_only(psn(0)).with(data)});
  s.app().fill_send_buffer({0, 0, 0, 0, 0});
  s.bench().memory.unmap(engine::ClientId{1}, Endpoint::kSendBuffer);
  s.at(ack_timeout(14)).expect({send_only(psn(0)).with(data)});
  s.at(70ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

TEST(Requester, SendsInlineDataOfSeveralPackets) {
  ScriptOptions options;
  options.connection.mtu = Mtu::k256;
  options.cap.max_inline_data = 600;
  Script s(options);
  const auto data = pattern(600);
  s.at(0ms)
      .app_posts({.wr_id = 1, .flags = abi::kSendSignaled | abi::kSendInline, .inline_data = data})
      .expect({send_first(psn(0)).with({data.begin(), data.begin() + 256}),
               send_middle(psn(1)).with({data.begin() + 256, data.begin() + 512}),
               send_last(psn(2)).with({data.begin() + 512, data.end()})});
  s.at(1ms).wire_delivers(ack(psn(2))).expect({completion(1)});
}

// A retransmission contains what is in the buffer at that time, since real NICs read the buffer
// again.
TEST(Requester, ReadsOrdinaryBuffersAnewForARetransmission) {
  Script s;
  s.app().fill_send_buffer({1, 1, 1, 1, 1, 1, 1, 1});
  s.at(0ms).app_posts_send(1).expect({send_only(psn(0)).with({1, 1, 1, 1, 1, 1, 1, 1})});
  s.app().fill_send_buffer({2, 2, 2, 2, 2, 2, 2, 2});
  s.at(ack_timeout(14)).expect({send_only(psn(0)).with({2, 2, 2, 2, 2, 2, 2, 2})});
  s.at(70ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

// ibv_reg_mr_iova(3): work requests contain addresses from the iova on, which differ from the
// memory's addresses.
TEST(Requester, TranslatesTheAddressesOfARegionWithAnIova) {
  Script s;
  s.app().fill_send_buffer({1, 2, 3, 4}, 100);
  const Mr mr = s.client().reg_mr(s.app().pd, Endpoint::kSendBuffer + 100, 4, 0, 0x7000);
  ASSERT_EQ(s.client().error, 0);
  s.at(0ms)
      .app_posts({.wr_id = 1, .sges = {{.address = 0x7001, .length = 3, .lkey = mr.lkey}}})
      .expect({send_only(psn(0)).with({2, 3, 4})});
  s.at(1ms).wire_delivers(ack(psn(0))).expect({completion(1)});
}

TEST(Requester, UsesTheAddressVectorsTrafficClassAndHopLimit) {
  struct Case {
    uint8_t given, sent;
  };
  // In InfiniBand, the hop limits 0 and 1 mean "same subnet"; on RoCE, the default replaces them.
  for (const auto& [given, sent_limit] : {Case{9, 9}, Case{255, 255}, Case{0, 64}, Case{1, 64}}) {
    ScriptOptions options;
    options.state = QpState::kInit;
    Script s(options);
    abi::AhAttr vector = address_vector(s.peer_ip());
    vector.traffic_class = 0x68;
    vector.hop_limit = given;
    for (const QpState to : {QpState::kRtr, QpState::kRts}) {
      const Transition step = transition_to(to, {}, vector, Script::kPeerQpn);
      s.app_modifies(step.attr, step.mask);
    }
    s.at(0ms).app_posts_send(1);
    const auto& sent = std::get<engine::TransmitFrame>(s.bench().log.at(0).output);
    const auto parsed = wire::parse_frame(sent.frame.bytes());
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->traffic_class, 0x68);
    EXPECT_EQ(parsed->hop_limit, sent_limit);
    // IBTA annex A17: the UDP source port is in the dynamic range, so that ECMP can use it.
    EXPECT_GE(parsed->udp_src_port, 0xc000);
    s.expect({send_only(psn(0))});
  }
}

}  // namespace
}  // namespace rocemu::test
