// Tests changes to a completion queue: ibv_resize_cq(3) and ibv_modify_cq(3). Also tests the amount
// of memory that a device reports (ibv_query_device_ex(3)).
#include <gtest/gtest.h>

#include <cerrno>

#include "emulator/engine/base/limits.h"
#include "tests/support/script.h"

namespace rocemu::test {
namespace {

ScriptOptions with_channel(uint32_t capacity = 256) {
  ScriptOptions options;
  options.channel = 99;
  options.cq_capacity = capacity;
  return options;
}

// ibv_resize_cq(3): "cqe must be at least the number of unpolled entries in the CQ cq."
TEST(ResizeCq, KeepsRoomForWhatWaits) {
  Script s(with_channel(4));
  s.at(0ms).app_posts_recv(1).app_posts_recv(2).app_posts_recv(3);
  for (uint32_t i = 0; i < 2; ++i) {
    s.wire_delivers(send_only(psn(i))).expect({received(i + 1), ack(psn(i))});
  }
  const uint32_t cq = s.app().recv_cq;
  EXPECT_EQ(s.client().resize_cq(cq, 1), EINVAL);
  EXPECT_EQ(s.client().resize_cq(cq, 2), 0);
  EXPECT_EQ(s.client().resize_cq(cq, 0), EINVAL);
  EXPECT_EQ(s.client().resize_cq(cq, engine::kMaxCqe), 0);
  EXPECT_EQ(s.client().resize_cq(cq, engine::kMaxCqe + 1), EINVAL);
  EXPECT_EQ(s.client().resize_cq(cq + 50, 8), ENOENT);
  s.client().consume(cq, 1);
  EXPECT_EQ(s.client().resize_cq(cq, 1), 0);
  s.wire_delivers(send_only(psn(2)))
      .expect({cq_failed(), event(abi::EventType::kCqErr, Endpoint::kRecvCqHandle),
               event(abi::EventType::kQpFatal, Endpoint::kQpHandle)});
  EXPECT_EQ(s.client().resize_cq(cq, 8), EINVAL) << "it cannot be used";
}

TEST(ResizeCq, GivesACqThatIsFullMoreRoom) {
  Script s(with_channel(1));
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
  EXPECT_EQ(s.client().resize_cq(s.app().recv_cq, 2), 0);
  s.wire_delivers(send_only(psn(1))).expect({received(2), ack(psn(1))});
}

TEST(ResizeCq, EndsAClientThatTookMissingCompletions) {
  Script s(with_channel());
  s.client().consume(s.app().recv_cq, 1);
  EXPECT_EQ(s.client().resize_cq(s.app().recv_cq, 8), EINVAL);
  s.expect({violation()});
}

class Moderation : public testing::Test {
 protected:
  Moderation() {
    s.at(0ms);
    for (uint64_t i = 0; i < 10; ++i) s.app_posts_recv(i);
  }
  /// Receives one SEND, and checks whether it causes an event.
  void receive(bool with_event) {
    const uint32_t n = count++;
    s.wire_delivers(send_only(psn(n)));
    if (with_event) {
      s.expect({received(n), completion_event(Endpoint::kRecvCqHandle), ack(psn(n))});
    } else {
      s.expect({received(n), ack(psn(n))});
    }
  }

  Script s{with_channel()};
  uint32_t count = 0;
};

// ibv_modify_cq(3): "cq_count: number of completions per event"
TEST_F(Moderation, WaitsForTheCount) {
  EXPECT_EQ(s.client().modify_cq(s.app().recv_cq, 3, 1000), 0);
  s.client().arm(s.app().recv_cq, 0);
  receive(false);
  receive(false);
  receive(true);
  receive(false);  // one shot
  s.at(1s).expect_silence();
}

// ibv_modify_cq(3): "cq_period: in micro seconds"
TEST_F(Moderation, WaitsNoLongerThanThePeriod) {
  EXPECT_EQ(s.client().modify_cq(s.app().recv_cq, 3, 1000), 0);
  s.client().arm(s.app().recv_cq, 0);
  receive(false);
  s.at(500us);
  receive(false);
  s.at(1ms).expect({completion_event(Endpoint::kRecvCqHandle)});
  s.at(1s).expect_silence();
  s.client().arm(s.app().recv_cq, 2);
  receive(false);
  s.at(1s + 1ms).expect({completion_event(Endpoint::kRecvCqHandle)});
}

TEST_F(Moderation, WithoutCountOrPeriodWaitsForNothing) {
  for (const auto& [number, period] : {std::pair{1u, 1000u}, {0u, 1000u}, {5u, 0u}, {0u, 0u}}) {
    EXPECT_EQ(s.client().modify_cq(s.app().recv_cq, number, period), 0);
    s.client().arm(s.app().recv_cq, count);
    receive(true);
  }
}

TEST_F(Moderation, HasLimits) {
  const uint32_t cq = s.app().recv_cq;
  EXPECT_EQ(s.client().modify_cq(cq, engine::kMaxCqModeration, engine::kMaxCqModeration), 0);
  EXPECT_EQ(s.client().modify_cq(cq, engine::kMaxCqModeration + 1, 0), EINVAL);
  EXPECT_EQ(s.client().modify_cq(cq, 0, engine::kMaxCqModeration + 1), EINVAL);
  EXPECT_EQ(s.client().modify_cq(cq + 50, 0, 0), ENOENT);
}

TEST_F(Moderation, EndsWithItsClient) {
  EXPECT_EQ(s.client().modify_cq(s.app().recv_cq, 3, 1000), 0);
  s.client().arm(s.app().recv_cq, 0);
  receive(false);
  s.bench().detach(s.client().id());
  s.bench().advance_to(10ms);
  EXPECT_TRUE(s.bench().log.empty());
  EXPECT_EQ(s.bench().engine().next_deadline(), std::nullopt);
}

TEST(QueryDevice, SaysWhatMemoryCanDo) {
  Script s;
  const abi::DeviceAttr attr = s.client().command(abi::Op::kQueryDevice, {}).body.device;
  constexpr uint32_t kMemWindow = 1u << 17, kMgtExtensions = 1u << 21, kType2a = 1u << 23,
                     kType2b = 1u << 24;
  const uint32_t wanted = kMemWindow | kMgtExtensions | kType2b;
  EXPECT_EQ(attr.device_cap_flags & (wanted | kType2a), wanted);
  EXPECT_EQ(attr.device_cap_flags_ex & 0xffffffff, attr.device_cap_flags);
  EXPECT_EQ(attr.device_cap_flags_ex >> 38, 7u) << "FLUSH global and persistent, ATOMIC WRITE";
  EXPECT_GT(attr.max_mw, 0u);
  EXPECT_EQ(attr.max_dm_size, engine::kMaxDeviceMemory);
  EXPECT_EQ(attr.timestamp_mask, ~uint64_t{0});
  EXPECT_EQ(attr.hca_core_clock, 1'000'000u) << "kHz: nanoseconds";
}

TEST(Snapshot, ShowsWindowsAndKinds) {
  Script s;
  const Mw mw = s.client().alloc_mw(s.app().pd, abi::MwType::k2);
  s.client().alloc_null_mr(s.app().pd);
  const auto device = s.bench().engine().snapshot().devices.at(0);
  ASSERT_EQ(device.mws.size(), 1u);
  EXPECT_EQ(device.mws[0].rkey, mw.rkey);
  EXPECT_FALSE(device.mws[0].bound);
  ASSERT_EQ(device.mrs.size(), 3u);
  EXPECT_EQ(device.mrs[2].kind, abi::RegionKind::kNull);
}

}  // namespace
}  // namespace rocemu::test
