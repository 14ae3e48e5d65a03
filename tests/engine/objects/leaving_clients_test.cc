// Tests clients that detach, with few objects or with very many.
#include <gtest/gtest.h>

#include <vector>

#include "emulator/engine/base/limits.h"
#include "tests/support/endpoint.h"

namespace rocemu::test {
namespace {

using engine::ClientId;
using engine::DeviceIndex;

constexpr uint32_t kVeryMany = 50'000;

class LeavingClients : public testing::Test {
 protected:
  /// Makes one step, and not the further steps that the engine requests.
  void step(const engine::Input& input) {
    bench.engine().step(bench.now(), input, outputs);
    outputs.clear();
  }
  size_t objects() const {
    size_t count = 0;
    const engine::FabricSnapshot snapshot = bench.engine().snapshot();
    for (const auto& device : snapshot.devices) {
      count += device.pds.size() + device.qps.size() + device.cqs.size() + device.srqs.size() +
               device.mrs.size() + device.mws.size() + device.ah_count;
    }
    return count;
  }
  /// Returns the number of steps until all remaining objects are removed.
  uint32_t steps_until_all_is_gone() {
    uint32_t steps = 0;
    while (bench.engine().next_deadline()) {
      EXPECT_LE(*bench.engine().next_deadline(), bench.now());
      step(engine::Tick{});
      ++steps;
    }
    return steps;
  }

  Bench bench{engine::default_fabric(2)};
  engine::Outputs outputs;
};

TEST_F(LeavingClients, WithFewObjectsAreGoneAtOnce) {
  Client client(bench, ClientId{1}, DeviceIndex{0});
  const uint32_t pd = client.alloc_pd(), cq = client.create_cq(16);
  for (int i = 0; i < 1000; ++i) client.create_qp({.pd = pd, .send_cq = cq, .recv_cq = cq});
  step(engine::DetachClient{client.id()});
  EXPECT_EQ(objects(), 0u);
  EXPECT_FALSE(bench.engine().next_deadline());
  EXPECT_TRUE(bench.engine().is_idle());
}

// Other clients must not wait until all objects of the detached client are destroyed.
TEST_F(LeavingClients, WithVeryManyObjectsAreReleasedInManySteps) {
  Client client(bench, ClientId{1}, DeviceIndex{0});
  const uint32_t pd = client.alloc_pd(), cq = client.create_cq(16);
  for (uint32_t i = 0; i < kVeryMany; ++i) {
    client.create_qp({.pd = pd, .send_cq = cq, .recv_cq = cq});
    client.alloc_mw(pd, abi::MwType::k1);
    client.alloc_pd();
  }
  Client other(bench, ClientId{2}, DeviceIndex{0});
  step(engine::DetachClient{client.id()});
  EXPECT_GT(objects(), 2 * kVeryMany);
  EXPECT_FALSE(bench.engine().is_idle());

  // A client with few objects attaches, and another one works, in the meantime.
  const size_t left = objects();
  Client visitor(bench, ClientId{3}, DeviceIndex{1});
  EXPECT_NE(other.alloc_pd(), 0u);
  EXPECT_LT(objects(), left + 1);

  steps_until_all_is_gone();
  EXPECT_EQ(objects(), 1u);
  EXPECT_TRUE(bench.engine().is_idle());
}

TEST_F(LeavingClients, AreDeadPeersFromTheFirstMomentOn) {
  Endpoint peer(bench, ClientId{1}, DeviceIndex{0}, {});
  Endpoint gone(bench, ClientId{2}, DeviceIndex{1}, {});
  for (uint32_t i = 0; i < kVeryMany; ++i) {
    gone.client.create_qp({.pd = gone.pd, .send_cq = gone.send_cq, .recv_cq = gone.recv_cq});
  }
  // Objects are destroyed in the order of their creation, so this QP is destroyed last.
  const uint32_t last =
      gone.client.create_qp(gone.pd, gone.send_cq, gone.recv_cq, EndpointOptions{}.cap);
  const abi::AhAttr to_peer = address_vector(wire::IpAddress::from_v4(127, 0, 0, 1));
  const abi::AhAttr to_gone = address_vector(wire::IpAddress::from_v4(127, 0, 0, 2));
  ASSERT_TRUE(bring_up(gone.client, last, abi::QpState::kRts, {}, to_peer, peer.qpn));
  ASSERT_TRUE(bring_up(peer.client, peer.qpn, abi::QpState::kRts, {}, to_gone, last));
  gone.client.post_recv(last, {.sges = {gone.recv_sge(64)}});
  step(engine::DetachClient{gone.client.id()});
  ASSERT_GT(objects(), kVeryMany / 2);
  peer.fill_send_buffer(std::vector<uint8_t>(64, 0xee));
  peer.post_send({.wr_id = 1, .sges = {peer.send_sge(64)}});
  EXPECT_EQ(gone.recv_bytes(1)[0], 0);
  bench.advance_to(60s);
  EXPECT_EQ(peer.state(), abi::QpState::kErr);
}

TEST_F(LeavingClients, OfARemovedDeviceGoByAndByToo) {
  Client client(bench, ClientId{1}, DeviceIndex{0});
  Client importer(bench, ClientId{2}, DeviceIndex{0}, ClientId{1});
  const uint32_t pd = client.alloc_pd(), cq = client.create_cq(16);
  for (uint32_t i = 0; i < kVeryMany; ++i) {
    client.create_qp({.pd = pd, .send_cq = cq, .recv_cq = cq});
    importer.alloc_mw(pd, abi::MwType::k1);
  }
  step(engine::RemoveDevice{DeviceIndex{0}});
  EXPECT_GT(objects(), kVeryMany);
  step(engine::DetachClient{client.id()});  // the device still destroys the client's objects
  steps_until_all_is_gone();
  EXPECT_EQ(objects(), 0u);
  bench.detach(importer.id());
  EXPECT_TRUE(bench.engine().is_idle());
}

// ---- Limits -----------------------------------------------------------------------------------

TEST_F(LeavingClients, AClientAtItsLimitsLeavesOthersTheirs) {
  Client greedy(bench, ClientId{1}, DeviceIndex{0});
  const uint32_t pd = greedy.alloc_pd(), cq = greedy.create_cq(1);
  const abi::AhAttr address = address_vector(wire::IpAddress::from_v4(127, 0, 0, 1));
  const auto qp = [&](Client& client, uint32_t of_pd, uint32_t of_cq) {
    client.create_qp({.pd = of_pd, .send_cq = of_cq, .recv_cq = of_cq});
    return client.error;
  };
  const auto exhaust = [&](uint32_t limit, auto make) {
    uint32_t made = 0;
    while (make() == 0) ++made;
    EXPECT_LE(made, limit);
    EXPECT_GE(made + 1, limit);
    EXPECT_EQ(greedy.error, ENOMEM);
  };
  const auto of = [](Client& client) { return [&client](uint32_t) { return client.error; }; };
  exhaust(engine::kMaxQps, [&] { return qp(greedy, pd, cq); });
  exhaust(engine::kMaxCqs, [&] { return of(greedy)(greedy.create_cq(1)); });
  exhaust(engine::kMaxSrqs, [&] { return of(greedy)(greedy.create_srq({.pd = pd})); });
  exhaust(engine::kMaxPds, [&] { return of(greedy)(greedy.alloc_pd()); });
  exhaust(engine::kMaxAhs, [&] { return of(greedy)(greedy.create_ah(pd, address)); });
  exhaust(engine::kMaxWindows, [&] {
    greedy.alloc_mw(pd, abi::MwType::k1);
    return greedy.error;
  });

  Client other(bench, ClientId{2}, DeviceIndex{0});
  const uint32_t others_pd = other.alloc_pd();
  EXPECT_EQ(other.error, 0);
  const uint32_t others_cq = other.create_cq(1);
  EXPECT_EQ(other.error, 0);
  EXPECT_EQ(qp(other, others_pd, others_cq), 0);
  other.create_srq({.pd = others_pd});
  EXPECT_EQ(other.error, 0);
  other.create_ah(others_pd, address);
  EXPECT_EQ(other.error, 0);
  other.alloc_mw(others_pd, abi::MwType::k1);
  EXPECT_EQ(other.error, 0);
}

}  // namespace
}  // namespace rocemu::test
