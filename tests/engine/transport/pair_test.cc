// Tests both sides of a connection together: within a fabric, and over a link that loses,
// duplicates, reorders and corrupts.
#include <gtest/gtest.h>

#include "emulator/engine/base/random.h"
#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using abi::QpState;
using abi::WcStatus;
using engine::Counter;

uint32_t status(WcStatus value) {
  return static_cast<uint32_t>(value);
}

// ---- One fabric -------------------------------------------------------------------------------

TEST(Pair, MovesAMessageWithinOneStep) {
  Pair pair;
  const auto message = pattern(5000);
  pair.left.fill_send_buffer(message);
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(8192)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(5000)}});
  const auto right = pair.take_right();
  ASSERT_EQ(right.size(), 1u);
  EXPECT_EQ(right[0].byte_len, 5000u);
  EXPECT_EQ(right[0].src_qp, pair.left.qpn);
  const auto left = pair.take_left();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].wr_id, 2u);
  EXPECT_EQ(pair.right.recv_bytes(5000), message);
  EXPECT_TRUE(pair.bench.log.empty());
  EXPECT_EQ(pair.bench.engine().next_deadline(), std::nullopt);
}

TEST(Pair, GivesTracedFramesAnIcrc) {
  PairOptions options;
  options.trace_frames = true;
  Pair pair(options);
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  size_t frames = 0;
  for (const Timed& entry : pair.bench.log) {
    const auto* trace = std::get_if<engine::FrameTrace>(&entry.output);
    if (trace == nullptr) continue;
    ++frames;
    EXPECT_TRUE(wire::check_icrc(trace->frame.bytes()));
  }
  EXPECT_EQ(frames, 2u);
}

TEST(Pair, RetriesWhenTheReceiverIsNotReady) {
  Pair pair;
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  EXPECT_TRUE(pair.take_left().empty());
  pair.bench.advance_to(10ms);
  EXPECT_TRUE(pair.take_left().empty());
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(64)}});
  pair.bench.advance_to(20ms);
  EXPECT_EQ(pair.take_left().size(), 1u);
  EXPECT_EQ(pair.take_right().size(), 1u);
}

// A message that needs many engine steps: each step moves a part of it, and next_deadline() shows
// that work remains.
TEST(Pair, MovesAMessageOfManySteps) {
  PairOptions options;
  options.left.buffer_size = options.right.buffer_size = 4 << 20;
  options.left.connection.mtu = options.right.connection.mtu = abi::Mtu::k256;
  Pair pair(options);
  const auto message = pattern(4 << 20);
  pair.left.fill_send_buffer(message);
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(4 << 20)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(4 << 20)}});
  EXPECT_EQ(pair.take_right().size(), 1u);
  EXPECT_EQ(pair.take_left().size(), 1u);
  EXPECT_EQ(pair.right.recv_bytes(4 << 20), message);
}

TEST(Pair, AStepMovesABoundedNumberOfFrames) {
  PairOptions options;
  options.left.connection.mtu = options.right.connection.mtu = abi::Mtu::k256;
  options.trace_frames = true;
  Pair pair(options);
  const auto wqe = send_wqe({.wr_id = 2, .sges = {pair.left.send_sge(1 << 16)}}, options.left.cap);
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(1 << 16)}});
  engine::Outputs outputs;
  pair.bench.engine().step(
      pair.bench.now(),
      engine::PostSend{pair.left.client.id(), engine::QpNumber{pair.left.qpn}, wqe}, outputs);
  EXPECT_LE(outputs.list.size(), 600u);
  EXPECT_LE(pair.bench.engine().next_deadline().value(), pair.bench.now());
}

// IBTA vol 1, 10.3.1.5 and the retry limit: for its peer, a client that detached is like a NIC that
// has failed.
TEST(Pair, ThePeerOfADetachedClientRetriesAndGivesUp) {
  PairOptions options;
  options.left.connection.retry_cnt = 2;
  Pair pair(options);
  pair.bench.detach(pair.right.client.id());
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(64)}});
  pair.bench.advance_to(1s);
  const auto left = pair.take_left();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].status, status(WcStatus::kRetryExcErr));
  EXPECT_TRUE(pair.bench.log.empty());
}

// A client may detach after any step: the traffic of the others continues, and nothing is written
// to its memory any more.
TEST(Pair, AClientCanDetachAtAnyPoint) {
  for (int point = 0; point < 14; ++point) {
    SCOPED_TRACE(point);
    Bench bench(engine::default_fabric(2));
    Endpoint a(bench, engine::ClientId{1}, engine::DeviceIndex{0}, {});
    Endpoint b(bench, engine::ClientId{2}, engine::DeviceIndex{1}, {});
    Endpoint c(bench, engine::ClientId{3}, engine::DeviceIndex{0}, {});
    Endpoint d(bench, engine::ClientId{4}, engine::DeviceIndex{1}, {});
    const auto to0 = address_vector(wire::IpAddress::from_v4(127, 0, 0, 1));
    const auto to1 = address_vector(wire::IpAddress::from_v4(127, 0, 0, 2));
    int step = 0;
    bool gone = false;
    const auto doing = [&](auto&& action) {
      if (step++ == point) {
        bench.detach(a.client.id());
        bench.log.clear();
        gone = true;
      }
      if (!gone) action();
    };
    EXPECT_TRUE(bring_up(c.client, c.qpn, QpState::kRts, {}, to1, d.qpn));
    EXPECT_TRUE(bring_up(d.client, d.qpn, QpState::kRts, {}, to0, c.qpn));
    EXPECT_TRUE(bring_up(b.client, b.qpn, QpState::kRts, {}, to0, a.qpn));
    doing([&] { EXPECT_TRUE(bring_up(a.client, a.qpn, QpState::kInit, {}, to1, b.qpn)); });
    doing([&] { a.post_recv({.wr_id = 1, .sges = {a.recv_sge(64)}}); });
    doing([&] { EXPECT_EQ(a.client.set_state(a.qpn, QpState::kReset), 0); });
    doing([&] { EXPECT_TRUE(bring_up(a.client, a.qpn, QpState::kRtr, {}, to1, b.qpn)); });
    b.post_send({.wr_id = 50, .sges = {b.send_sge(64)}});  // no receive: RNR
    doing([&] {
      const Transition rts = transition_to(QpState::kRts, {}, to1, b.qpn);
      EXPECT_EQ(a.client.modify_qp(a.qpn, rts.attr, rts.mask), 0);
    });
    doing([&] { a.client.arm(a.recv_cq, 0); });
    doing([&] { a.post_recv({.wr_id = 2, .sges = {a.recv_sge(64)}}); });
    doing([&] { bench.advance_to(2ms); });
    doing([&] { a.post_send({.wr_id = 3, .sges = {a.send_sge(64)}}); });  // no receive: RNR
    doing([&] { bench.advance_to(3ms); });
    doing([&] { a.post_send({.wr_id = 4, .sges = {{1, 1, 1}}}); });
    doing([&] { EXPECT_EQ(a.client.set_state(a.qpn, QpState::kErr), 0); });
    doing([&] { a.client.consume(a.recv_cq, 1); });
    if (!gone) bench.detach(a.client.id());
    bench.log.clear();

    d.post_recv({.wr_id = 7, .sges = {d.recv_sge(64)}});
    c.post_send({.wr_id = 8, .sges = {c.send_sge(64)}});
    EXPECT_EQ(completions_of(bench.log, engine::ClientId{4}).size(), 1u);
    bench.advance_to(100s);
    EXPECT_EQ(completions_of(bench.log, engine::ClientId{3}).size(), 1u);
    EXPECT_TRUE(completions_of(bench.log, engine::ClientId{1}).empty());
    const auto of_b = completions_of(bench.log, engine::ClientId{2});
    if (of_b.size() == 1) {
      EXPECT_EQ(of_b[0].status, status(WcStatus::kRetryExcErr));
    }
    EXPECT_EQ(bench.engine().next_deadline(), std::nullopt);
  }
}

// ---- A link with faults -----------------------------------------------------------------------

class Joined : public testing::Test {
 protected:
  static EndpointOptions options() {
    EndpointOptions out;
    out.connection.mtu = abi::Mtu::k256;
    return out;
  }
  JoinedPair pair{options(), options()};

  /// Sends messages of these sizes, and checks that each arrives once and in order.
  void exchange(const std::vector<uint32_t>& sizes, engine::Duration within) {
    uint64_t offset = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      pair.left.fill_send_buffer(pattern(sizes[i], static_cast<uint32_t>(i)), offset);
      pair.right.post_recv({.wr_id = i, .sges = {pair.right.recv_sge(sizes[i], offset)}});
      pair.left.post_send({.wr_id = i, .sges = {pair.left.send_sge(sizes[i], offset)}});
      offset += sizes[i];
    }
    pair.run_until(within);
    const auto left = pair.take_left(), right = pair.take_right();
    ASSERT_EQ(left.size(), sizes.size());
    ASSERT_EQ(right.size(), sizes.size());
    offset = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(left[i].wr_id, i);
      EXPECT_EQ(right[i].wr_id, i);
      EXPECT_EQ(left[i].status, status(WcStatus::kSuccess));
      EXPECT_EQ(right[i].status, status(WcStatus::kSuccess));
      EXPECT_EQ(right[i].byte_len, sizes[i]);
      EXPECT_EQ(pair.right.recv_bytes(sizes[i], offset),
                pattern(sizes[i], static_cast<uint32_t>(i)));
      offset += sizes[i];
    }
  }
  uint64_t left_counter(Counter which) { return counter(pair.left_bench.engine(), which); }
  uint64_t right_counter(Counter which) { return counter(pair.right_bench.engine(), which); }
};

TEST_F(Joined, WithoutFaultsNothingIsRepeated) {
  exchange({1, 256, 1000, 0, 257}, 1ms);
  EXPECT_EQ(left_counter(Counter::kRetransmittedFrames), 0u);
  EXPECT_EQ(right_counter(Counter::kDuplicateRequests), 0u);
}

TEST_F(Joined, ALostRequestIsNakedAndSentAgain) {
  pair.drop_next(FrameKind::kRequest);
  exchange({100, 100, 100}, 1ms);
  EXPECT_EQ(right_counter(Counter::kSequenceNaksSent), 1u);
  EXPECT_EQ(left_counter(Counter::kAckTimeouts), 0u);
}

TEST_F(Joined, ALostLastRequestIsSentAgainAfterTheTimeout) {
  pair.drop_next(FrameKind::kRequest);
  exchange({100}, 100ms);
  EXPECT_EQ(left_counter(Counter::kAckTimeouts), 1u);
}

TEST_F(Joined, ALostAckLeadsToADuplicateThatIsNotExecuted) {
  pair.drop_next(FrameKind::kAck);
  exchange({700}, 100ms);
  EXPECT_EQ(left_counter(Counter::kAckTimeouts), 1u);
  EXPECT_EQ(right_counter(Counter::kDuplicateRequests), 3u);
}

TEST_F(Joined, ALostAckIsRepairedByTheNext) {
  pair.drop_next(FrameKind::kAck);
  exchange({10, 10}, 1ms);
  EXPECT_EQ(left_counter(Counter::kRetransmittedFrames), 0u);
}

TEST_F(Joined, ALostNakIsRepairedByTheTimeout) {
  pair.drop_next(FrameKind::kRequest);
  pair.drop_next(FrameKind::kNak);
  exchange({10, 10, 10}, 100ms);
  EXPECT_EQ(left_counter(Counter::kAckTimeouts), 1u);
}

TEST_F(Joined, ADuplicatedRequestIsExecutedOnce) {
  pair.duplicate_next(FrameKind::kRequest);
  pair.duplicate_next(FrameKind::kRequest);
  exchange({600, 10}, 1ms);
  EXPECT_GT(right_counter(Counter::kDuplicateRequests), 0u);
}

TEST_F(Joined, ADuplicatedAckIsStale) {
  pair.duplicate_next(FrameKind::kAck);
  exchange({10, 10}, 1ms);
  EXPECT_EQ(left_counter(Counter::kStaleAcks), 1u);
}

TEST_F(Joined, RequestsOutOfOrderAreRepeated) {
  pair.delay_next(FrameKind::kRequest);
  exchange({10, 10, 10}, 100ms);
}

TEST_F(Joined, AcksOutOfOrderAreHarmless) {
  pair.delay_next(FrameKind::kAck);
  exchange({10, 10, 10}, 1ms);
  EXPECT_EQ(left_counter(Counter::kStaleAcks), 1u);
}

TEST_F(Joined, ACorruptFrameIsALostFrame) {
  pair.corrupt_next(FrameKind::kRequest);
  pair.corrupt_next(FrameKind::kAck);
  exchange({10, 10, 10}, 100ms);
  EXPECT_EQ(right_counter(Counter::kDroppedBadIcrc), 1u);
}

// Whichever frames the link loses or duplicates, each message must arrive once, in order and
// undamaged.
TEST(JoinedPair, SurvivesRandomFaults) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    EndpointOptions options;
    options.connection.mtu = abi::Mtu::k256;
    options.connection.timeout = 8;  // 1 ms
    options.connection.min_rnr_timer = 1;
    // the PSN wraps during the test
    options.connection.sq_psn = options.connection.rq_psn = 0xffffe0;
    JoinedPair pair(options, options);
    engine::Random random(seed);
    const uint64_t loss = 2 + seed % 30;  // one of `loss` frames is lost
    pair.copies = [&](std::span<const uint8_t>) {
      if (random.next() % loss == 0) return 0;
      return random.next() % loss == 0 ? 2 : 1;
    };
    constexpr uint32_t kMessages = 60;
    uint32_t sent = 0, posted = 0, left = 0, right = 0;
    bool failed = false;
    for (int round = 1; round < 5000 && right < kMessages && !failed; ++round) {
      while (posted < kMessages && posted < right + 10 && random.next() % 2 == 0) {
        pair.right.post_recv(
            {.wr_id = posted++, .sges = {pair.right.recv_sge(1000, (posted % 16) * 1000)}});
      }
      while (sent < kMessages && sent < left + 10 && random.next() % 2 == 0) {
        const auto size = static_cast<uint32_t>(sent * 37 % 1000);
        pair.left.fill_send_buffer(pattern(size, sent), (sent % 16) * 1000);
        pair.left.post_send(
            {.wr_id = sent, .sges = {pair.left.send_sge(size, (sent % 16) * 1000)}});
        ++sent;
      }
      if (random.next() % 5 == 0) pair.delay_next(FrameKind::kAny);
      pair.run_until(round * 300us);
      for (const abi::Cqe& cqe : pair.take_right()) {
        if (cqe.status != 0) {
          failed = true;
          break;
        }
        ASSERT_EQ(cqe.wr_id, right);
        const auto size = static_cast<uint32_t>(right * 37 % 1000);
        ASSERT_EQ(cqe.byte_len, size);
        ASSERT_EQ(pair.right.recv_bytes(size, ((right + 1) % 16) * 1000), pattern(size, right));
        ++right;
      }
      for (const abi::Cqe& cqe : pair.take_left()) {
        if (cqe.status != 0) {
          // the link may lose so many frames that the retries do not suffice
          ASSERT_EQ(cqe.status, status(WcStatus::kRetryExcErr));
          failed = true;
          break;
        }
        ASSERT_EQ(cqe.wr_id, left++);
        ASSERT_LE(left, right);
      }
    }
    EXPECT_TRUE(right == kMessages || (failed && loss < 6)) << right << " messages arrived";
  }
}

}  // namespace
}  // namespace rocemu::test
