// Tests the reaction point of DCQCN by its rules: Zhu et al., SIGCOMM 2015, section 3.
#include "emulator/network/dcqcn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "emulator/network/timely.h"

namespace rocemu::network {
namespace {

using namespace std::chrono_literals;
using engine::Duration;
using engine::Instant;

constexpr uint64_t kLine = 100'000'000'000;

Instant at(Duration since_start) {
  return Instant(since_start);
}

TEST(Dcqcn, StartsAtLineRateAndHasNoTimersThen) {
  const Dcqcn flow({}, kLine);
  EXPECT_EQ(flow.rate_bps(), kLine);
  EXPECT_FALSE(flow.next_deadline());
}

// Equation (1): the rate decreases by a factor of 1 - alpha / 2, and alpha is 1 at first.
TEST(Dcqcn, HalvesTheRateAtTheFirstCnp) {
  Dcqcn flow({.alpha_interval = 1s}, kLine);
  flow.on_cnp(at(10us));
  EXPECT_EQ(flow.rate_bps(), kLine / 2);
  EXPECT_EQ(flow.target_rate_bps(), kLine);
  EXPECT_DOUBLE_EQ(flow.alpha(), 1.0);  // (1 - g) * alpha + g, where alpha was 1
  EXPECT_EQ(flow.next_deadline(), at(65us));
}

// Equation (2): alpha decreases by a factor of 1 - g in each interval without a CNP.
TEST(Dcqcn, DecaysAlphaWithoutCnps) {
  Dcqcn flow({}, kLine);
  flow.on_cnp(at(0us));
  flow.advance(at(550us));
  EXPECT_NEAR(flow.alpha(), std::pow(255.0 / 256, 10), 1e-6);
}

// Equation (3): five steps of fast recovery, each of which goes half of the way to the target.
TEST(Dcqcn, RecoversHalfOfTheWayInEachOfFiveSteps) {
  Dcqcn flow({.alpha_interval = 1s}, kLine);
  flow.on_cnp(at(0us));
  flow.on_cnp(at(0us));  // the rate is 25 of 100 Gbit/s, and the target is 50
  for (int step = 1; step <= 5; ++step) {
    flow.advance(at(step * 55us));
    EXPECT_NEAR(static_cast<double>(flow.rate_bps()), 50e9 - 25e9 / (1 << step), 10) << step;
    EXPECT_EQ(flow.target_rate_bps(), kLine / 2);
  }
  flow.advance(at(6 * 55us - 1ns));
  EXPECT_EQ(flow.target_rate_bps(), kLine / 2);
  flow.advance(at(6 * 55us));  // the target increases additively, by equation (4)
  EXPECT_EQ(flow.target_rate_bps(), kLine / 2 + 40'000'000);
}

TEST(Dcqcn, CountsBytesBesideTime) {
  Dcqcn flow({.byte_counter = 1'000'000}, kLine);
  flow.on_cnp(at(0us));
  flow.on_sent(999'999, at(1us));
  EXPECT_EQ(flow.rate_bps(), kLine / 2);
  flow.on_sent(1, at(2us));
  EXPECT_EQ(flow.rate_bps(), kLine * 3 / 4);
  flow.on_sent(2'000'000, at(3us));
  EXPECT_EQ(flow.rate_bps(), kLine / 16 * 15);
}

// Hyper increase begins when both counters have expired more than five times.
TEST(Dcqcn, IncreasesFasterAfterBothCountersHaveExpiredOften) {
  Dcqcn flow({.byte_counter = 1'000'000, .hyper_increase_bps = 1'000'000'000}, kLine);
  for (int i = 0; i < 2; ++i) flow.on_cnp(at(0us));
  // the byte counter expired six times, so the sixth step is additive
  flow.on_sent(6'000'000, at(1us));
  EXPECT_EQ(flow.target_rate_bps(), kLine / 2 + 40'000'000);
  // the timer expired only five times, so the increase is still additive
  flow.advance(at(5 * 55us));
  EXPECT_EQ(flow.target_rate_bps(), kLine / 2 + 6 * 40'000'000);
  flow.advance(at(6 * 55us));
  EXPECT_EQ(flow.target_rate_bps(), kLine / 2 + 6 * 40'000'000 + 1'000'000'000);
}

TEST(Dcqcn, HasTheSameRateHoweverLateItIsAsked) {
  Dcqcn often({}, kLine), late({}, kLine);
  often.on_cnp(at(0us));
  late.on_cnp(at(0us));
  for (Duration now{}; now <= 20ms; now += 7us) often.advance(at(now));
  often.advance(at(20ms));
  late.advance(at(20ms));
  EXPECT_EQ(often.rate_bps(), late.rate_bps());
  EXPECT_EQ(often.alpha(), late.alpha());
  late.advance(at(10s));
  EXPECT_EQ(late.rate_bps(), kLine);
  EXPECT_FALSE(late.next_deadline());
}

TEST(Dcqcn, NeverFallsBelowItsMinimum) {
  Dcqcn flow({}, kLine);
  for (int i = 0; i < 1000; ++i) flow.on_cnp(at(i * 50us));
  EXPECT_GE(flow.rate_bps(), 10'000'000u);
}

TEST(CnpLimiter, LetsOneCnpPassInFiftyMicroseconds) {
  engine::CnpLimiter limiter;
  EXPECT_TRUE(limiter.should_send(at(3us), 50us));
  EXPECT_FALSE(limiter.should_send(at(53us - 1ns), 50us));
  EXPECT_TRUE(limiter.should_send(at(53us), 50us));
}

TEST(Pacer, KeepsARateOverManyFrames) {
  engine::Pacer pacer;
  // 1000 bytes at 7 Gbit/s take 1142.857 ns.
  for (int i = 0; i < 7000; ++i) pacer.sent(1000, 7'000'000'000, pacer.ready_at());
  EXPECT_NEAR(static_cast<double>(pacer.ready_at().time_since_epoch().count()), 8e6, 10);
  // A sender that was idle may not send faster afterwards.
  pacer.sent(1000, 1'000'000'000, at(1s));
  EXPECT_EQ(pacer.ready_at(), at(1s + 8us));
}

// Algorithm 1 of TIMELY: below T_low the rate increases, above T_high it decreases by beta * (1 -
// T_high / rtt), and between them it follows the gradient.
TEST(Timely, FollowsTheRoundTrip) {
  Timely flow({}, kLine);
  flow.on_acknowledged(16384, 1000us, at(0us));
  EXPECT_NEAR(static_cast<double>(flow.rate_bps()), 100e9 * (1 - 0.8 * (1 - 0.5)), 10);
  const uint64_t rate = flow.rate_bps();
  flow.on_acknowledged(16384, 30us, at(1us));
  EXPECT_EQ(flow.rate_bps(), rate + 10'000'000);
  flow.on_acknowledged(8192, 30us, at(2us));  // half a segment
  EXPECT_EQ(flow.rate_bps(), rate + 10'000'000);
}

}  // namespace
}  // namespace rocemu::network
