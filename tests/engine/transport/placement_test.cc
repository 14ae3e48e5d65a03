// Tests ATOMIC WRITE and FLUSH (IBTA vol 1, annex A19: memory placement extensions).
#include <gtest/gtest.h>

#include "tests/support/pair.h"
#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::QpState;
using abi::WcOpcode;
using abi::WcStatus;
using abi::WrOpcode;
using engine::VendorError;
using wire::NakCode;
using wire::Opcode;

constexpr uint32_t kFlushAccess = abi::kAccessFlushGlobal | abi::kAccessFlushPersistent;
constexpr uint32_t kGlobal = wire::Feth::kGlobalVisibility, kPersistent = wire::Feth::kPersistence;
constexpr uint32_t kRange = wire::Feth::kRange, kRegion = wire::Feth::kRegion;

EndpointOptions open_to_all() {
  EndpointOptions options;
  options.connection.access = abi::kAccessRemoteWrite | abi::kAccessRemoteRead | kFlushAccess;
  options.connection.max_rd_atomic = 4;
  options.connection.mtu = abi::Mtu::k256;
  options.recv_access = abi::kAccessLocalWrite | options.connection.access;
  return options;
}

PairOptions both() {
  PairOptions options;
  options.left = options.right = open_to_all();
  return options;
}

ScriptOptions script_options() {
  ScriptOptions options;
  static_cast<EndpointOptions&>(options) = open_to_all();
  return options;
}

SendWr atomic_write(const Endpoint& to, abi::Sge from, uint64_t offset = 0) {
  return {.wr_id = 1,
          .opcode = WrOpcode::kAtomicWrite,
          .sges = {from},
          .remote_address = Endpoint::kRecvBuffer + offset,
          .rkey = to.recv_mr.rkey};
}

SendWr flush(const Endpoint& at, FlushWr what, uint64_t offset = 0) {
  return {.wr_id = 2,
          .opcode = WrOpcode::kFlush,
          .remote_address = Endpoint::kRecvBuffer + offset,
          .rkey = at.recv_mr.rkey,
          .flush = what};
}

/// Returns the response to an ATOMIC WRITE or a FLUSH.
PacketSpec empty_response(wire::Psn n) {
  PacketSpec spec = packet(Opcode::kRcReadResponseOnly, n).of_length(0);
  spec.packet.aeth.syndrome = wire::ack_syndrome();
  return spec;
}

TEST(AtomicWrite, WritesEightBytes) {
  Pair pair(both());
  pair.left.fill_send_buffer(pattern(8));
  pair.left.post_send(atomic_write(pair.right, pair.left.send_sge(8), 16));
  SendWr from_wqe = atomic_write(pair.right, {}, 32);
  from_wqe.flags |= abi::kSendInline;
  from_wqe.sges.clear();
  from_wqe.inline_data = pattern(8, 2);
  pair.left.post_send(from_wqe);
  const auto done = pair.take_left();
  ASSERT_EQ(done.size(), 2u);
  for (const abi::Cqe& cqe : done) {
    EXPECT_EQ(cqe.status, static_cast<uint32_t>(WcStatus::kSuccess));
    EXPECT_EQ(cqe.opcode, static_cast<uint32_t>(WcOpcode::kAtomicWrite));
  }
  EXPECT_EQ(pair.right.recv_bytes(8, 16), pattern(8));
  EXPECT_EQ(pair.right.recv_bytes(8, 32), pattern(8, 2));
  EXPECT_TRUE(pair.take_right().empty());
}

TEST(AtomicWrite, OfAnyOtherLengthFailsAtTheWriter) {
  for (const uint32_t length : {0u, 7u, 9u, 4096u}) {
    Pair pair(both());
    pair.left.post_send(atomic_write(pair.right, pair.left.send_sge(length)));
    const auto done = pair.take_left();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kLocLenErr));
    EXPECT_EQ(done[0].vendor_err, static_cast<uint32_t>(VendorError::kBadWqe));
  }
}

TEST(AtomicWrite, FromMemoryThatIsNotThereFailsAtTheWriter) {
  Pair pair(both());
  pair.left.memory().unmap(pair.left.client.id(), Endpoint::kSendBuffer);
  pair.left.post_send(atomic_write(pair.right, pair.left.send_sge(8)));
  const auto done = pair.take_left();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kLocProtErr));
}

// Like a READ, an ATOMIC WRITE waits for its response, is sent again, and counts for max_rd_atomic.
TEST(AtomicWrite, IsSentAgainUntilItIsAnswered) {
  ScriptOptions options = script_options();
  options.connection.max_rd_atomic = 1;
  Script s(options);
  s.app().fill_send_buffer(pattern(8));
  const SendWr wr = atomic_write(s.app(), s.app().send_sge(8));
  const PacketSpec request = packet(Opcode::kRcAtomicWrite, psn(0)).with(pattern(8));
  s.at(0ms).app_posts(wr).app_posts(wr).expect({request});
  s.at(ack_timeout(14)).expect({request});
  const PacketSpec second = packet(Opcode::kRcAtomicWrite, psn(1)).with(pattern(8));
  const Expected done = CompletionSpec(1).opcode(WcOpcode::kAtomicWrite);
  s.at(80ms).wire_delivers(empty_response(psn(0))).expect({done, second});
  s.wire_delivers(empty_response(psn(1))).expect({done});
}

TEST(AtomicWrite, AnsweredWithDataIsABadResponse) {
  Script s(script_options());
  s.at(0ms)
      .app_posts(atomic_write(s.app(), s.app().send_sge(8)))
      .expect({packet(Opcode::kRcAtomicWrite, psn(0))});
  s.wire_delivers(empty_response(psn(0)).of_length(8))
      .expect({failed(1, WcStatus::kBadRespErr).vendor(VendorError::kBadResponse)});
}

PacketSpec write_request(const Script& s, wire::Psn n, uint64_t offset, std::vector<uint8_t> data) {
  PacketSpec spec = packet(Opcode::kRcAtomicWrite, n).with(std::move(data));
  spec.packet.reth = {.va = Endpoint::kRecvBuffer + offset,
                      .rkey = const_cast<Script&>(s).app().recv_mr.rkey,
                      .dma_length = 8};
  return spec;
}

// A duplicate ATOMIC WRITE must not overwrite later data.
TEST(AtomicWrite, ThatComesTwiceIsExecutedOnce) {
  Script s(script_options());
  const PacketSpec first = write_request(s, psn(0), 0, pattern(8, 1));
  s.at(0ms).wire_delivers(first).expect({empty_response(psn(0)).with_msn(1)});
  s.wire_delivers(write_request(s, psn(1), 0, pattern(8, 2))).expect({empty_response(psn(1))});
  s.wire_delivers(first).expect({empty_response(psn(0))});
  s.expect_received(pattern(8, 2));
}

struct BadWrite {
  const char* name;
  NakCode nak;
  void (*spoil)(PacketSpec&);
};

class AtomicWriteRefusal : public testing::TestWithParam<BadWrite> {};

TEST_P(AtomicWriteRefusal, IsANak) {
  Script s(script_options());
  PacketSpec request = write_request(s, psn(0), 0, pattern(8));
  GetParam().spoil(request);
  const auto event_type = GetParam().nak == NakCode::kInvalidRequest ? abi::EventType::kQpReqErr
                                                                     : abi::EventType::kQpAccessErr;
  s.at(0ms)
      .wire_delivers(request)
      .expect({nak(psn(0), GetParam().nak), event(event_type, Endpoint::kQpHandle)})
      .expect_state(QpState::kErr);
  s.expect_received(std::vector<uint8_t>(24));
}

INSTANTIATE_TEST_SUITE_P(
    Of, AtomicWriteRefusal,
    testing::Values(BadWrite{"AMisalignedAddress", NakCode::kInvalidRequest,
                             [](PacketSpec& one) { one.packet.reth.va += 4; }},
                    BadWrite{"SevenBytes", NakCode::kInvalidRequest,
                             [](PacketSpec& one) { one.payload = pattern(7); }},
                    BadWrite{"ALengthThatIsNotThatOfThePayload", NakCode::kInvalidRequest,
                             [](PacketSpec& one) { one.packet.reth.dma_length = 16; }},
                    BadWrite{"AStaleKey", NakCode::kRemoteAccessError,
                             [](PacketSpec& one) { one.packet.reth.rkey ^= 1; }},
                    BadWrite{"TheFirstWordBehindTheRegion", NakCode::kRemoteAccessError,
                             [](PacketSpec& one) { one.packet.reth.va += 1 << 16; }}),
    [](const testing::TestParamInfo<BadWrite>& one) { return one.param.name; });

// ---- FLUSH ------------------------------------------------------------------------------------

TEST(Flush, CompletesBehindTheWritesBeforeIt) {
  for (const uint32_t type : {kGlobal, kPersistent, kGlobal | kPersistent}) {
    Pair pair(both());
    pair.left.fill_send_buffer(pattern(1000));
    pair.left.post_send({.wr_id = 1,
                         .opcode = WrOpcode::kRdmaWrite,
                         .sges = {pair.left.send_sge(1000)},
                         .remote_address = Endpoint::kRecvBuffer,
                         .rkey = pair.right.recv_mr.rkey});
    pair.left.post_send(flush(pair.right, {.length = 1000, .type = type, .level = kRange}));
    const auto done = pair.take_left();
    ASSERT_EQ(done.size(), 2u);
    EXPECT_EQ(done[1].status, static_cast<uint32_t>(WcStatus::kSuccess));
    EXPECT_EQ(done[1].opcode, static_cast<uint32_t>(WcOpcode::kFlush));
    EXPECT_EQ(pair.right.recv_bytes(1000), pattern(1000));
  }
}

TEST(Flush, HasItsTypeAndRangeInItsHeaders) {
  Script s(script_options());
  s.at(0ms).app_posts(flush(s.app(), {.length = 77, .type = kPersistent, .level = kRegion}, 5));
  ASSERT_EQ(s.bench().log.size(), 1u);
  const auto& frame = std::get<engine::TransmitFrame>(s.bench().log[0].output).frame;
  const auto sent = wire::parse_frame(frame.bytes());
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->feth, (wire::Feth{.selectivity = kRegion, .placement = kPersistent}));
  EXPECT_EQ(sent->reth,
            (wire::Reth{
                .va = Endpoint::kRecvBuffer + 5, .rkey = s.app().recv_mr.rkey, .dma_length = 77}));
  s.expect({packet(Opcode::kRcFlush, psn(0)).of_length(0)});
  s.wire_delivers(empty_response(psn(0))).expect({CompletionSpec(2).opcode(WcOpcode::kFlush)});
}

TEST(Flush, OfTheRegionIgnoresTheRange) {
  Pair pair(both());
  pair.left.post_send(flush(pair.right, {.length = 0, .type = kGlobal, .level = kRegion}, 1 << 20));
  ASSERT_EQ(pair.take_left().size(), 1u);
  EXPECT_EQ(pair.left.state(), QpState::kRts);
}

TEST(Flush, ThatComesTwiceIsAnsweredTwice) {
  Script s(script_options());
  PacketSpec request = packet(Opcode::kRcFlush, psn(0));
  request.packet.feth = {.selectivity = kRange, .placement = kGlobal};
  request.packet.reth = {
      .va = Endpoint::kRecvBuffer, .rkey = s.app().recv_mr.rkey, .dma_length = 8};
  s.at(0ms).wire_delivers(request).expect({empty_response(psn(0)).with_msn(1)});
  s.wire_delivers(request).expect({empty_response(psn(0)).with_msn(1)});
}

struct BadFlush {
  const char* name;
  WcStatus status;
  void (*spoil)(EndpointOptions& right, SendWr& wr);
};

class FlushRefusal : public testing::TestWithParam<BadFlush> {};

TEST_P(FlushRefusal, FailsWithItsCause) {
  PairOptions options = both();
  SendWr spoiled{.flush = FlushWr{.length = 8, .type = kGlobal, .level = kRange}};
  GetParam().spoil(options.right, spoiled);
  Pair pair(options);
  SendWr wr = flush(pair.right, *spoiled.flush, spoiled.remote_address);
  wr.rkey ^= spoiled.rkey;
  pair.left.post_send(wr);
  const auto done = pair.take_left();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, static_cast<uint32_t>(GetParam().status));
}

INSTANTIATE_TEST_SUITE_P(
    Of, FlushRefusal,
    testing::Values(BadFlush{"NoType", WcStatus::kRemInvReqErr,
                             [](EndpointOptions&, SendWr& wr) { wr.flush->type = 0; }},
                    BadFlush{"ATypeThatIsNone", WcStatus::kRemInvReqErr,
                             [](EndpointOptions&, SendWr& wr) { wr.flush->type = 4; }},
                    BadFlush{"ALevelThatIsNone", WcStatus::kRemInvReqErr,
                             [](EndpointOptions&, SendWr& wr) { wr.flush->level = 2; }},
                    BadFlush{
                        "OneByteTooMany", WcStatus::kRemAccessErr,
                        [](EndpointOptions&, SendWr& wr) { wr.flush->length = (1 << 16) + 1; }},
                    BadFlush{"TheWholeAddressSpace", WcStatus::kRemAccessErr,
                             [](EndpointOptions&, SendWr& wr) { wr.flush->length = 0xffffffff; }},
                    BadFlush{"AStaleKey", WcStatus::kRemAccessErr,
                             [](EndpointOptions&, SendWr& wr) { wr.rkey = 1; }},
                    BadFlush{"AStaleKeyOfAWholeRegion", WcStatus::kRemAccessErr,
                             [](EndpointOptions&, SendWr& wr) {
                               wr.rkey = 1;
                               wr.flush->level = kRegion;
                             }},
                    BadFlush{"ARegionWithoutThatAccess", WcStatus::kRemAccessErr,
                             [](EndpointOptions& right, SendWr& wr) {
                               right.recv_access &= ~uint32_t{abi::kAccessFlushPersistent};
                               wr.flush->type = kGlobal | kPersistent;
                             }},
                    BadFlush{"AQpWithoutThatAccess", WcStatus::kRemInvReqErr,
                             [](EndpointOptions& right, SendWr&) {
                               right.connection.access &= ~uint32_t{abi::kAccessFlushGlobal};
                             }}),
    [](const testing::TestParamInfo<BadFlush>& one) { return one.param.name; });

}  // namespace
}  // namespace rocemu::test
