// Tests memory windows: bind and local invalidate among other requests, SEND with invalidate, and
// which accesses a window allows a peer (IBTA vol 1, 10.6.7, 10.8.3; ibv_bind_mw(3),
// ibv_post_send(3)).
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/pair.h"
#include "tests/support/script.h"

namespace rocemu::test {
namespace {

using abi::MwType;
using abi::QpState;
using abi::WcOpcode;
using abi::WcStatus;
using abi::WrOpcode;
using engine::VendorError;
using wire::Opcode;

constexpr uint32_t kRegionAccess = abi::kAccessLocalWrite | abi::kAccessMwBind;
constexpr uint32_t kRemote =
    abi::kAccessRemoteWrite | abi::kAccessRemoteRead | abi::kAccessRemoteAtomic;

EndpointOptions with_windows() {
  EndpointOptions options;
  options.connection.access = kRemote;
  options.connection.max_rd_atomic = 4;
  options.connection.mtu = abi::Mtu::k256;
  options.recv_access = kRegionAccess;
  return options;
}

uint32_t next_rkey(uint32_t rkey) {  // ibv_inc_rkey(3)
  return (rkey & ~0xffu) | ((rkey + 1) & 0xff);
}

/// Returns a request that binds the window to the first `length` bytes of the endpoint's receive
/// buffer.
SendWr bind(const Endpoint& on, const Mw& mw, uint64_t length, uint64_t wr_id = 50) {
  return {.wr_id = wr_id,
          .opcode = WrOpcode::kBindMw,
          .remote_address = Endpoint::kRecvBuffer,
          .rkey = next_rkey(mw.rkey),
          .bind = BindWr{
              .window = mw.handle, .lkey = on.recv_mr.lkey, .length = length, .access = kRemote}};
}

SendWr local_inv(uint32_t rkey, uint64_t wr_id = 60) {
  return {.wr_id = wr_id, .opcode = WrOpcode::kLocalInv, .imm = rkey};
}

SendWr write_to(uint32_t rkey, uint64_t offset, abi::Sge from) {
  return {.wr_id = 1,
          .opcode = WrOpcode::kRdmaWrite,
          .sges = {from},
          .remote_address = Endpoint::kRecvBuffer + offset,
          .rkey = rkey};
}

CompletionSpec bound(uint64_t wr_id = 50) {
  return CompletionSpec(wr_id).on(abi::WorkQueue::kSend).opcode(WcOpcode::kBindMw).bytes(0);
}
CompletionSpec invalidated(uint64_t wr_id = 60) {
  return CompletionSpec(wr_id).on(abi::WorkQueue::kSend).opcode(WcOpcode::kLocalInv).bytes(0);
}

ScriptOptions script_options() {
  ScriptOptions options;
  static_cast<EndpointOptions&>(options) = with_windows();
  return options;
}

class WindowRequests : public testing::Test {
 protected:
  WindowRequests() : pair(both()) {}
  static PairOptions both() {
    PairOptions options;
    options.left = options.right = with_windows();
    return options;
  }
  WcStatus status_of_left() {
    const auto done = pair.take_left();
    EXPECT_EQ(done.size(), 1u);
    return done.empty() ? WcStatus::kGeneralErr : static_cast<WcStatus>(done.back().status);
  }
  /// Binds a window on the right side's QP. Returns its R_Key.
  uint32_t bind_right(MwType type, uint64_t length) {
    mw = pair.right.client.alloc_mw(pair.right.pd, type);
    pair.right.post_send(bind(pair.right, mw, length));
    const auto done = pair.take_right();
    EXPECT_EQ(done.size(), 1u);
    EXPECT_EQ(done.at(0).status, static_cast<uint32_t>(WcStatus::kSuccess));
    return next_rkey(mw.rkey);
  }

  Pair pair;
  Mw mw;
};

TEST_F(WindowRequests, LetThePeerWriteReadAndAddWithinThem) {
  for (const MwType type : {MwType::k1, MwType::k2}) {
    const uint32_t rkey = bind_right(type, 100);
    pair.left.fill_send_buffer(pattern(60));
    pair.left.post_send(write_to(rkey, 40, pair.left.send_sge(60)));
    EXPECT_EQ(status_of_left(), WcStatus::kSuccess);
    EXPECT_EQ(pair.right.recv_bytes(60, 40), pattern(60));
    SendWr read = write_to(rkey, 40, pair.left.recv_sge(60));
    read.opcode = WrOpcode::kRdmaRead;
    pair.left.post_send(read);
    EXPECT_EQ(status_of_left(), WcStatus::kSuccess);
    EXPECT_EQ(pair.left.recv_bytes(60), pattern(60));
    SendWr add = write_to(rkey, 8, pair.left.recv_sge(8));
    add.opcode = WrOpcode::kAtomicFetchAndAdd;
    pair.left.post_send(add);
    EXPECT_EQ(status_of_left(), WcStatus::kSuccess);
  }
}

TEST_F(WindowRequests, EndOneByteAfterTheirLast) {
  const uint32_t rkey = bind_right(MwType::k2, 100);
  pair.left.post_send(write_to(rkey, 40, pair.left.send_sge(61)));
  EXPECT_EQ(status_of_left(), WcStatus::kRemAccessErr);
}

TEST_F(WindowRequests, DoNotOpenTheirRegionToItsOwnRKey) {
  bind_right(MwType::k2, 100);
  pair.left.post_send(write_to(pair.right.recv_mr.rkey, 0, pair.left.send_sge(8)));
  EXPECT_EQ(status_of_left(), WcStatus::kRemAccessErr);
}

// ibv_dereg_mr(3): "fails if any memory window is still bound". ibv_rereg_mr(3) fails as well.
TEST_F(WindowRequests, KeepTheirRegion) {
  for (const MwType type : {MwType::k1, MwType::k2}) {
    bind_right(type, 100);
    Client& client = pair.right.client;
    EXPECT_EQ(client.dereg_mr(pair.right.recv_mr.handle), EBUSY);
    client.rereg_mr(pair.right.recv_mr.handle, abi::kReregAccess, 0, 0, 0, kRegionAccess);
    EXPECT_EQ(client.error, EBUSY);
    EXPECT_EQ(client.dealloc_mw(mw.handle), 0);
  }
  EXPECT_EQ(pair.right.client.dereg_mr(pair.right.recv_mr.handle), 0);
}

TEST_F(WindowRequests, OfType2EndWithTheirQp) {
  bind_right(MwType::k2, 100);
  EXPECT_EQ(pair.right.client.destroy_qp(pair.right.qpn), 0);
  EXPECT_EQ(pair.right.client.dereg_mr(pair.right.recv_mr.handle), 0);
}

TEST_F(WindowRequests, AreClosedByALocalInvalidate) {
  const uint32_t rkey = bind_right(MwType::k2, 100);
  pair.right.post_send(local_inv(rkey));
  const auto done = pair.take_right();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].opcode, static_cast<uint32_t>(WcOpcode::kLocalInv));
  pair.left.post_send(write_to(rkey, 0, pair.left.send_sge(8)));
  EXPECT_EQ(status_of_left(), WcStatus::kRemAccessErr);
}

// ibv_poll_cq(3): the completion has IBV_WC_WITH_INV, and the R_Key instead of immediate data.
TEST_F(WindowRequests, AreClosedByAPeersSendWithInvalidate) {
  for (const uint32_t size : {0u, 8u, 700u}) {
    const uint32_t rkey = bind_right(MwType::k2, 100);
    pair.right.post_recv({.wr_id = 9, .sges = {pair.right.recv_sge(1000)}});
    pair.left.post_send({.wr_id = 2,
                         .opcode = WrOpcode::kSendWithInv,
                         .imm = rkey,
                         .sges = {pair.left.send_sge(size)}});
    EXPECT_EQ(status_of_left(), WcStatus::kSuccess);
    const auto done = pair.take_right();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kSuccess));
    EXPECT_EQ(done[0].byte_len, size);
    EXPECT_EQ(done[0].wc_flags, static_cast<uint32_t>(abi::kWcWithInv));
    EXPECT_EQ(done[0].imm_data, rkey);
    EXPECT_EQ(pair.right.client
                  .rereg_mr(pair.right.recv_mr.handle, abi::kReregAccess, 0, 0, 0, kRegionAccess)
                  .handle,
              pair.right.recv_mr.handle)
        << "no longer bound";
    abi::Request::Body body{};
    body.object.handle = pair.right.recv_mr.handle;
    pair.right.recv_mr.lkey = pair.right.client.command(abi::Op::kQueryMr, body).body.reg_mr.lkey;
  }
}

TEST_F(WindowRequests, CannotBeInvalidatedByThePeerIfTheyAreOfType1) {
  const uint32_t type1 = bind_right(MwType::k1, 100);
  pair.right.post_recv({.wr_id = 9, .sges = {pair.right.recv_sge(1000)}});
  pair.left.post_send({.wr_id = 2,
                       .opcode = WrOpcode::kSendWithInv,
                       .imm = type1,
                       .sges = {pair.left.send_sge(8)}});
  EXPECT_EQ(status_of_left(), WcStatus::kRemAccessErr);
  const auto done = pair.take_right();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, static_cast<uint32_t>(WcStatus::kLocAccessErr));
  EXPECT_EQ(done[0].vendor_err, static_cast<uint32_t>(VendorError::kBadInvalidate));
  EXPECT_EQ(pair.right.state(), QpState::kErr);
}

// ibv_bind_mw(3): "a send after a bind request on the same QP are always ordered". Completions also
// keep the order of the requests: a local request completes after the sends before it.
TEST(LocalOperations, TakeEffectInOrderAndCompleteInOrder) {
  Script s(script_options());
  const Mw mw = s.client().alloc_mw(s.app().pd, MwType::k2);
  s.at(0ms)
      .app_posts_send(1)
      .app_posts(bind(s.app(), mw, 64))
      .app_posts_send(2)
      .app_posts(local_inv(next_rkey(mw.rkey)))
      .expect({send_only(psn(0)), send_only(psn(1))});
  s.at(1ms).wire_delivers(ack(psn(0))).expect({completion(1), bound()});
  s.at(2ms).wire_delivers(ack(psn(1))).expect({completion(2), invalidated()});
}

TEST(LocalOperations, CompleteAtOnceWhenNothingIsBeforeThem) {
  Script s(script_options());
  const Mw mw = s.client().alloc_mw(s.app().pd, MwType::k1);
  s.at(0ms).app_posts(bind(s.app(), mw, 64)).expect({bound()});
  SendWr quiet = bind(s.app(), mw, 32, 51);
  quiet.flags = 0;
  s.app_posts(quiet).expect_silence();
}

TEST(LocalOperations, AreNotRepeatedByRetransmissions) {
  Script s(script_options());
  const Mw mw = s.client().alloc_mw(s.app().pd, MwType::k2);
  s.at(0ms)
      .app_posts_send(1)
      .app_posts(bind(s.app(), mw, 64))
      .app_posts_send(2)
      .expect({send_only(psn(0)), send_only(psn(1))});
  // the bind is not executed again, since a second bind would fail
  s.at(ack_timeout(14)).expect({send_only(psn(0)), send_only(psn(1))});
  s.at(80ms).wire_delivers(ack(psn(1))).expect({completion(1), bound(), completion(2)});
}

// IBTA vol 1, 10.8.3.3: with a fence, a local invalidate waits for earlier READs and atomics.
TEST(LocalOperations, WaitBehindAFence) {
  Script s(script_options());
  const Mw mw = s.client().alloc_mw(s.app().pd, MwType::k2);
  const uint32_t rkey = next_rkey(mw.rkey);
  s.at(0ms).app_posts(bind(s.app(), mw, 64)).expect({bound()});
  s.app_posts({.wr_id = 1, .opcode = WrOpcode::kRdmaRead, .sges = {s.app().recv_sge(8)}})
      .expect({packet(Opcode::kRcReadRequest, psn(0))});
  SendWr fenced = local_inv(rkey);
  fenced.flags |= abi::kSendFence;
  s.app_posts(fenced).expect_silence();
  // The window is still open to the peer, since the invalidate waits.
  PacketSpec write = packet(Opcode::kRcWriteOnly, psn(0)).of_length(8);
  write.packet.reth = {.va = Endpoint::kRecvBuffer, .rkey = rkey, .dma_length = 8};
  s.wire_delivers(write).expect({ack(psn(0))});
  PacketSpec answer = packet(Opcode::kRcReadResponseOnly, psn(0)).of_length(8);
  answer.packet.aeth.syndrome = wire::ack_syndrome();
  s.wire_delivers(answer).expect({completion(1).opcode(WcOpcode::kRdmaRead), invalidated()});
  write.packet.bth.psn = psn(1);
  s.wire_delivers(write)
      .expect({nak(psn(1), wire::NakCode::kRemoteAccessError),
               event(abi::EventType::kQpAccessErr, Endpoint::kQpHandle)})
      .expect_state(QpState::kErr);
}

// IBTA vol 1, 11.6.2: the request completes with a memory management operation error, after the
// requests before it.
TEST(LocalOperations, ThatFailEndTheQp) {
  Script s(script_options());
  const Mw mw = s.client().alloc_mw(s.app().pd, MwType::k2);
  SendWr bad = bind(s.app(), mw, 64);
  bad.bind->length = 1 << 20;
  s.at(0ms).app_posts_send(1).app_posts(bad).app_posts_send(2).expect({send_only(psn(0))});
  s.at(1ms)
      .wire_delivers(ack(psn(0)))
      .expect({completion(1), failed(50, WcStatus::kMwBindErr).vendor(VendorError::kBadBind),
               flushed(2)})
      .expect_state(QpState::kErr);
  Script t(script_options());
  t.at(0ms)
      .app_posts(local_inv(0x123))
      .expect({failed(60, WcStatus::kMwBindErr).vendor(VendorError::kBadInvalidate)})
      .expect_state(QpState::kErr);
}

TEST(SendWithInvalidate, CarriesTheRKeyInItsLastPacket) {
  Script s(script_options());
  SendWr wr{.wr_id = 1,
            .opcode = WrOpcode::kSendWithInv,
            .imm = 0xabcd12,
            .sges = {s.app().send_sge(300)}};
  s.at(0ms).app_posts(wr).expect(
      {send_first(psn(0)).ack_req(false), packet(Opcode::kRcSendLastInv, psn(1)).of_length(44)});
  wr.sges = {s.app().send_sge(8)};
  s.app_posts(wr);
  ASSERT_EQ(s.bench().log.size(), 1u);
  const auto& frame = std::get<engine::TransmitFrame>(s.bench().log[0].output).frame;
  const auto sent = wire::parse_frame(frame.bytes());
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->ieth.rkey, 0xabcd12u);
  s.expect({packet(Opcode::kRcSendOnlyInv, psn(2)).of_length(8)});
}

// C9-105: a duplicate is not executed again, since the window may have been bound to other memory
// in the meantime.
TEST(SendWithInvalidate, ThatComesTwiceInvalidatesOnce) {
  Script s(script_options());
  const Mw mw = s.client().alloc_mw(s.app().pd, MwType::k2);
  s.at(0ms).app_posts(bind(s.app(), mw, 64)).expect({bound()});
  PacketSpec send = packet(Opcode::kRcSendOnlyInv, psn(0)).of_length(8);
  send.packet.ieth.rkey = next_rkey(mw.rkey);
  s.app_posts_recv(7).wire_delivers(send);
  ASSERT_EQ(s.bench().log.size(), 2u);
  EXPECT_EQ(std::get<engine::Completion>(s.bench().log[0].output).cqe.wc_flags, abi::kWcWithInv);
  s.bench().log.clear();
  s.app_posts(bind(s.app(), mw, 64)).expect({bound()});  // bound again, with the same key
  s.wire_delivers(send).expect({ack(psn(0))});
  PacketSpec write = packet(Opcode::kRcWriteOnly, psn(1)).of_length(8);
  write.packet.reth = {.va = Endpoint::kRecvBuffer, .rkey = next_rkey(mw.rkey), .dma_length = 8};
  s.wire_delivers(write).expect({ack(psn(1))});
}

// ---- Regions that are deregistered in the middle of a message ----------------------------------

TEST(RegionsThatGo, AreNotWrittenByTheRestOfAMessage) {
  ScriptOptions options = script_options();
  options.recv_access |= abi::kAccessRemoteWrite;
  Script s(options);
  PacketSpec first = packet(Opcode::kRcWriteFirst, psn(0)).of_length(256);
  first.packet.reth = {
      .va = Endpoint::kRecvBuffer, .rkey = s.app().recv_mr.rkey, .dma_length = 264};
  s.at(0ms).wire_delivers(first).expect_silence();
  EXPECT_EQ(s.client().dereg_mr(s.app().recv_mr.handle), 0);
  s.wire_delivers(packet(Opcode::kRcWriteLast, psn(1)).of_length(8))
      .expect({nak(psn(1), wire::NakCode::kRemoteAccessError),
               event(abi::EventType::kQpAccessErr, Endpoint::kQpHandle)});
  s.expect_received(std::vector<uint8_t>(8), 256);
}

}  // namespace
}  // namespace rocemu::test
