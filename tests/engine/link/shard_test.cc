// A fabric in parts: an engine for each device and one for the connections, which give each other
// frames (shard.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <vector>

#include "emulator/engine/base/limits.h"
#include "tests/support/endpoint.h"
#include "tests/support/pair.h"
#include "tests/support/script.h"
#include "wire/cm/mad.h"

namespace rocemu::test {
namespace {

using engine::DeviceIndex;
using engine::QpNumber;
using engine::Shard;

constexpr uint32_t kMulticastQpn = 0xffffff;
constexpr wire::IpAddress kGroup = wire::IpAddress::from_v4(224, 1, 2, 3);

Shard part_of(uint32_t device, uint32_t devices = 2) {
  return {.of = Shard::Of::kDevice, .device = {device}, .devices = devices};
}

// ---- What is whose ----

TEST(Shard, OneForAllHasEveryQp) {
  const Shard part;
  EXPECT_TRUE(part.has({0}, {17}));
  EXPECT_TRUE(part.has({3}, {wire::kGsiQpn}));
  EXPECT_EQ(part.qpns().first, engine::kFirstQpn);
  EXPECT_EQ(part.qpns().first + part.qpns().count, kMulticastQpn);
  EXPECT_EQ(part.device_with({17}), std::nullopt);
}

TEST(Shard, OfADeviceHasItsQpsButTheFirst) {
  EXPECT_TRUE(part_of(1).has({1}, {17}));
  EXPECT_FALSE(part_of(1).has({0}, {17}));
  EXPECT_FALSE(part_of(1).has({1}, {wire::kGsiQpn}));
  const Shard connections{.of = Shard::Of::kConnections, .devices = 2};
  EXPECT_TRUE(connections.has({1}, {wire::kGsiQpn}));
  EXPECT_FALSE(connections.has({1}, {17}));
}

TEST(Shard, AQpnTellsItsDevice) {
  for (const uint32_t devices : {1u, 2u, 15u, 16u, 250u}) {
    uint32_t next = engine::kFirstQpn;
    for (uint32_t device = 0; device < devices; ++device) {
      const auto [first, count] = part_of(device, devices).qpns();
      EXPECT_EQ(first, next);
      EXPECT_GE(count, 67'000u);
      next = first + count;
      for (const uint32_t qpn : {first, first + count - 1}) {
        EXPECT_EQ(part_of(0, devices).device_with({qpn}), DeviceIndex{device});
      }
    }
    EXPECT_LE(next, kMulticastQpn);
    EXPECT_EQ(part_of(0, devices).device_with({next}), std::nullopt);
  }
  EXPECT_EQ(part_of(0).device_with({wire::kGsiQpn}), std::nullopt);
}

// ---- Frames from one to another ----

engine::FabricConfig fabric_of(Shard part, bool trace_frames) {
  engine::FabricConfig fabric = engine::default_fabric(2);
  fabric.shard = part;
  fabric.trace_frames = trace_frames;
  return fabric;
}

abi::AhAttr without_grh() {
  abi::AhAttr attr{};
  attr.port_num = 1;
  return attr;
}

class TwoParts : public testing::TestWithParam<bool> {
 protected:
  void connect(bool grh = true) {
    const auto to = [&](uint32_t device) {
      return grh ? address_vector(engine::default_fabric(2).devices[device].addresses[0])
                 : without_grh();
    };
    ASSERT_TRUE(bring_up(left.client, left.qpn, abi::QpState::kRts, {}, to(1), right.qpn));
    ASSERT_TRUE(bring_up(right.client, right.qpn, abi::QpState::kRts, {}, to(0), left.qpn));
  }

  /// Moves frames until none is under way.
  void settle() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t from = 0; from < 2; ++from) moved |= forward_all(from);
    }
  }

  /// Drops what a device has sent; how many frames.
  size_t forwards(size_t from) {
    const std::vector<Timed> log = std::exchange(benches[from].log, {});
    return static_cast<size_t>(std::ranges::count_if(log, [](const Timed& entry) {
      return std::holds_alternative<engine::ForwardFrame>(entry.output);
    }));
  }

  /// Those of one device, together.
  bool forward_all(size_t from) {
    const std::vector<Timed> log = std::exchange(benches[from].log, {});
    std::vector<engine::ForwardedFrame> frames;
    for (const Timed& entry : log) {
      if (const auto* completion = std::get_if<engine::Completion>(&entry.output)) {
        done[from].push_back(completion->cqe);
      }
      const auto* sent = std::get_if<engine::ForwardFrame>(&entry.output);
      if (sent == nullptr) continue;
      EXPECT_EQ(sent->to, DeviceIndex{static_cast<uint32_t>(1 - from)});
      EXPECT_FALSE(sent->to_connections);
      frames.push_back({.to = sent->to,
                        .check_icrc = sent->check_icrc,
                        .packet = sent->frame.packet(),
                        .bytes = sent->frame.bytes()});
    }
    if (frames.empty()) return false;
    benches[1 - from].step(engine::ForwardedFrames{frames});
    return true;
  }

  std::array<Bench, 2> benches{Bench(fabric_of(part_of(0), GetParam())),
                               Bench(fabric_of(part_of(1), GetParam()))};
  Endpoint left{benches[0], engine::ClientId{1}, DeviceIndex{0}, {}};
  Endpoint right{benches[1], engine::ClientId{2}, DeviceIndex{1}, {}};
  std::array<std::vector<abi::Cqe>, 2> done;
};
INSTANTIATE_TEST_SUITE_P(Traced, TwoParts, testing::Bool());

TEST_P(TwoParts, AMessageArrivesAndIsAcknowledged) {
  connect();
  std::vector<uint8_t> message(10'000);
  std::iota(message.begin(), message.end(), uint8_t{0});
  left.fill_send_buffer(message);
  right.post_recv({.wr_id = 5, .sges = {right.recv_sge(20'000)}});
  left.post_send({.wr_id = 6, .sges = {left.send_sge(10'000)}});
  settle();
  ASSERT_EQ(done[1].size(), 1u);
  EXPECT_EQ(done[1][0].wr_id, 5u);
  EXPECT_EQ(done[1][0].byte_len, 10'000u);
  EXPECT_EQ(right.recv_bytes(10'000), message);
  ASSERT_EQ(done[0].size(), 1u);
  EXPECT_EQ(done[0][0].wr_id, 6u);
  EXPECT_EQ(done[0][0].status, static_cast<uint32_t>(abi::WcStatus::kSuccess));
}

TEST_P(TwoParts, ThePeerIsFoundByItsQpnWithoutARouteHeader) {
  ASSERT_NO_FATAL_FAILURE(connect(false));
  right.post_recv({.wr_id = 5, .sges = {right.recv_sge(8)}});
  left.post_send({.wr_id = 6, .sges = {left.send_sge(8)}});
  settle();
  EXPECT_EQ(done[1].size(), 1u);
  EXPECT_EQ(done[0].size(), 1u);
}

TEST_P(TwoParts, PacketsThatComeTogetherAreWrittenTogether) {
  connect();
  right.post_recv({.wr_id = 5, .sges = {right.recv_sge(8192)}});
  left.post_send({.wr_id = 6, .sges = {left.send_sge(8192)}});
  ASSERT_TRUE(forward_all(0));
  EXPECT_EQ(right.memory().writes, 1u);
}

// The peer's thread may have no processor: IBTA vol 1, 9.7.6.1.3 allows up to 4 T.
TEST_P(TwoParts, APeerThatSaysNothingIsAskedLaterAndLater) {
  connect();
  right.post_recv({.wr_id = 5, .sges = {right.recv_sge(8)}});
  left.post_send({.wr_id = 6, .sges = {left.send_sge(8)}});
  EXPECT_EQ(forwards(0), 1u);
  engine::Duration time{};
  for (const int factor : {1, 2, 4}) {
    time += factor * ack_timeout(14);
    benches[0].advance_to(time - 1ns);
    EXPECT_EQ(forwards(0), 0u) << factor;
    benches[0].advance_to(time);
    EXPECT_EQ(forwards(0), 1u) << factor;
  }
  benches[0].advance_to(time + 4 * ack_timeout(14));
  settle();  // now it has one
  ASSERT_EQ(done[0].size(), 1u);
  EXPECT_EQ(done[0][0].status, static_cast<uint32_t>(abi::WcStatus::kSuccess));
}

TEST_P(TwoParts, FewPacketsAreUnderWayAtFirst) {
  connect();
  right.post_recv({.wr_id = 5, .sges = {right.recv_sge(200'000)}});
  left.post_send({.wr_id = 6, .sges = {left.send_sge(200'000)}});
  EXPECT_EQ(forwards(0), 16u);
}

TEST_P(TwoParts, EachSideIsCountedOnce) {
  connect();
  right.post_recv({.wr_id = 5, .sges = {right.recv_sge(8)}});
  left.post_send({.wr_id = 6, .sges = {left.send_sge(8)}});
  settle();
  engine::FabricSnapshot whole = benches[0].engine().snapshot();
  engine::merge(whole, benches[1].engine().snapshot());
  const auto count = [&](size_t device, std::string_view name) {
    const auto& counters = whole.devices[device].counters;
    return std::ranges::find(counters, name, [](const auto& it) { return it.first; })->second;
  };
  for (const size_t device : {0u, 1u}) {
    EXPECT_EQ(count(device, "frames_out"), 1u);
    EXPECT_EQ(count(device, "frames_in"), 1u);
    ASSERT_EQ(whole.devices[device].qps.size(), 1u);
  }
  EXPECT_EQ(whole.devices[0].qps[0].number.value, left.qpn);
  EXPECT_EQ(whole.devices[1].qps[0].number.value, right.qpn);
}

TEST(ForwardedFrames, ADamagedOneIsCountedAndDropped) {
  Bench bench(fabric_of(part_of(1), false));
  const std::vector<uint8_t> bytes(100, 0x55);
  const engine::ForwardedFrame frame{
      .to = {1}, .check_icrc = true, .packet = nullptr, .bytes = bytes};
  bench.step(engine::ForwardedFrames{{&frame, 1}});
  EXPECT_EQ(counter(bench.engine(), engine::Counter::kDroppedMalformed, 1), 1u);
}

// ---- Datagrams ----

EndpointOptions datagrams() {
  EndpointOptions options;
  options.connection.type = abi::QpType::kUd;
  return options;
}

/// A UD QP on the first of two devices.
struct Sender {
  Sender() {
    EXPECT_TRUE(bring_up(app.client, app.qpn, abi::QpState::kRts, datagrams().connection, {}, 0));
  }
  /// What the engine wants forwarded when it has sent there.
  std::vector<engine::ForwardFrame> send(const wire::IpAddress& to, uint32_t qpn) {
    const uint32_t ah = app.client.create_ah(app.pd, address_vector(to));
    bench.log.clear();
    app.post_send({.wr_id = 1,
                   .sges = {app.send_sge(256)},
                   .ah = ah,
                   .remote_qpn = qpn,
                   .remote_qkey = 0x1234});
    std::vector<engine::ForwardFrame> forwarded;
    for (const Timed& entry : bench.log) {
      const auto* frame = std::get_if<engine::ForwardFrame>(&entry.output);
      if (frame != nullptr) forwarded.push_back(*frame);
    }
    return forwarded;
  }

  Bench bench{fabric_of(part_of(0), false)};
  Endpoint app{bench, engine::ClientId{1}, DeviceIndex{0}, datagrams()};
};

TEST(PartOfADevice, LeavesMadsToTheConnections) {
  Sender sender;
  const engine::FabricConfig fabric = engine::default_fabric(2);
  for (const uint32_t device : {0u, 1u}) {  // its own as well
    const auto frames = sender.send(fabric.devices[device].addresses[0], wire::kGsiQpn);
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_TRUE(frames[0].to_connections);
    EXPECT_EQ(frames[0].to, DeviceIndex{device});
  }
}

TEST(PartOfADevice, SendsToAGroupOnAllOthers) {
  Sender sender;
  const auto frames = sender.send(kGroup, kMulticastQpn);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].to, DeviceIndex{1});

  Bench bench(fabric_of(part_of(1), false));
  Endpoint member(bench, engine::ClientId{2}, DeviceIndex{1}, datagrams());
  ASSERT_TRUE(
      bring_up(member.client, member.qpn, abi::QpState::kRts, datagrams().connection, {}, 0));
  member.post_recv({.wr_id = 7, .sges = {member.recv_sge(1000)}});
  const engine::ForwardedFrame frame{.to = {1},
                                     .check_icrc = false,
                                     .packet = frames[0].frame.packet(),
                                     .bytes = frames[0].frame.bytes()};
  // Nobody is attached: a NIC does not even see it.
  bench.step(engine::ForwardedFrames{{&frame, 1}});
  EXPECT_EQ(counter(bench.engine(), engine::Counter::kFramesIn, 1), 0u);

  abi::Request::Body body{};
  body.mcast.qpn = member.qpn;
  std::ranges::copy(kGroup.bytes, body.mcast.gid);
  ASSERT_EQ(member.client.command(abi::Op::kAttachMcast, body).error, 0);
  bench.step(engine::ForwardedFrames{{&frame, 1}});
  const auto done = completions_of(bench.log, engine::ClientId{2});
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wr_id, 7u);
  EXPECT_EQ(done[0].byte_len, 40u + 256u);
}

}  // namespace
}  // namespace rocemu::test
