// Tests an engine that was not stepped for longer than an ACK timeout. Before it lets timers
// expire, it must handle the frames that were sent earlier, and their answers.
#include <gtest/gtest.h>

#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using abi::WrOpcode;

constexpr uint32_t kMessage = 16 * 1024;  // 16 packets
constexpr uint32_t kMessages = 48;        // more packets than one step moves
constexpr engine::Instant kLate{10s};     // later than all retries together

PairOptions options() {
  PairOptions options;
  options.right.connection.access = abi::kAccessRemoteWrite | abi::kAccessRemoteRead;
  options.left.connection.max_rd_atomic = options.right.connection.max_rd_atomic = 16;
  options.left.connection.retry_cnt = options.right.connection.retry_cnt = 0;
  options.right.recv_access =
      abi::kAccessLocalWrite | abi::kAccessRemoteWrite | abi::kAccessRemoteRead;
  return options;
}

class LateStep : public testing::Test {
 protected:
  /// Makes one step with one input, and not the further steps that the engine requests.
  void step(engine::Instant now, const engine::Input& input) {
    outputs_.clear();
    pair_.bench.engine().step(now, input, outputs_);
    for (const engine::Output& output : outputs_.list) {
      const auto* completion = std::get_if<engine::Completion>(&output);
      if (completion != nullptr && completion->client == pair_.left.client.id()) {
        statuses_.push_back(completion->cqe.status);
      }
    }
  }

  void post(WrOpcode opcode) {
    std::vector<std::byte> wqes;
    for (uint64_t i = 0; i < kMessages; ++i) {
      const abi::Sge sge = opcode == WrOpcode::kRdmaRead ? pair_.left.recv_sge(kMessage)
                                                         : pair_.left.send_sge(kMessage);
      const auto wqe = send_wqe({.wr_id = i,
                                 .opcode = opcode,
                                 .sges = {sge},
                                 .remote_address = Endpoint::kRecvBuffer,
                                 .rkey = pair_.right.recv_mr.rkey},
                                EndpointOptions().cap);
      wqes.insert(wqes.end(), wqe.begin(), wqe.end());
    }
    step(pair_.bench.now(),
         engine::PostSend{pair_.left.client.id(), engine::QpNumber{pair_.left.qpn}, wqes});
  }

  void run_at(engine::Instant now) {
    for (auto next = pair_.bench.engine().next_deadline(); next && *next <= now;
         next = pair_.bench.engine().next_deadline()) {
      step(now, engine::Tick{});
    }
  }

  uint64_t ack_timeouts() {
    return pair_.bench.engine().snapshot().devices[0].counters.get(engine::Counter::kAckTimeouts);
  }

  Pair pair_{options()};
  engine::Outputs outputs_;
  std::vector<uint32_t> statuses_;
};

// IBTA vol 1, 9.7.6.1.3: an ACK timer may expire only if a response does not arrive.
TEST_F(LateStep, TimesOutNoWriteThatIsUnderWay) {
  post(WrOpcode::kRdmaWrite);
  ASSERT_LT(statuses_.size(), kMessages);
  run_at(kLate);
  EXPECT_EQ(statuses_, std::vector<uint32_t>(kMessages, 0));
  EXPECT_EQ(ack_timeouts(), 0u);
}

TEST_F(LateStep, TimesOutNoReadThatTheResponderIsAnswering) {
  post(WrOpcode::kRdmaRead);
  ASSERT_LT(statuses_.size(), kMessages);
  run_at(kLate);
  EXPECT_EQ(statuses_, std::vector<uint32_t>(kMessages, 0));
  EXPECT_EQ(ack_timeouts(), 0u);
}

TEST_F(LateStep, TimesOutNothingAfterRepeatedStalls) {
  post(WrOpcode::kRdmaRead);
  engine::Instant now = kLate;
  for (auto next = pair_.bench.engine().next_deadline(); next && *next <= now;
       next = pair_.bench.engine().next_deadline()) {
    step(now, engine::Tick{});
    now += 100ms;
  }
  EXPECT_EQ(statuses_, std::vector<uint32_t>(kMessages, 0));
  EXPECT_EQ(ack_timeouts(), 0u);
}

// A lost frame is still detected, although other frames are always on their way.
TEST_F(LateStep, StillTimesOutLostPackets) {
  pair_.bench.step(engine::SetPort{engine::DeviceIndex{1}, false});
  post(WrOpcode::kRdmaWrite);
  run_at(kLate);
  ASSERT_FALSE(statuses_.empty());
  EXPECT_EQ(statuses_[0], static_cast<uint32_t>(abi::WcStatus::kRetryExcErr));
}

// The frame arrived before the timer expired, but the engine gets it with a later time.
TEST(LateFrame, ComesBeforeTheTimerThatWaitsForIt) {
  EndpointOptions options;
  options.connection.retry_cnt = 0;
  JoinedPair pair(options, options);
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(100)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(100)}});
  const auto frame_of = [](Bench& bench) {
    for (const Timed& entry : std::exchange(bench.log, {})) {
      if (const auto* sent = std::get_if<engine::TransmitFrame>(&entry.output)) {
        const auto bytes = sent->frame.bytes();
        return std::vector<uint8_t>(bytes.begin(), bytes.end());
      }
    }
    return std::vector<uint8_t>();
  };
  pair.right_bench.step(engine::ReceivedFrame{engine::DeviceIndex{0}, frame_of(pair.left_bench)});
  const auto ack = frame_of(pair.right_bench);
  engine::Outputs outputs;
  const engine::ReceivedFrame late{engine::DeviceIndex{0}, ack};
  pair.left_bench.engine().step(kLate, engine::ReceivedFrames{{&late, 1}}, outputs);
  pair.left_bench.engine().step(kLate, engine::Tick{}, outputs);
  ASSERT_EQ(outputs.list.size(), 1u);
  EXPECT_EQ(std::get<engine::Completion>(outputs.list[0]).cqe.status, 0u);
}

}  // namespace
}  // namespace rocemu::test
