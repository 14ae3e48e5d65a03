// Tests what programs and their peers see when a device is removed while programs use it.
#include <gtest/gtest.h>

#include <cerrno>
#include <utility>

#include "tests/support/event_channel.h"
#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using abi::WcStatus;
using abi::ucma::Command;
using abi::ucma::EventType;
using engine::ClientId;
using engine::DeviceIndex;
using engine::DeviceLost;
using engine::RemoveDevice;

constexpr uint64_t kUid = 0x1234'5678'9abc'def0;
constexpr DeviceIndex kFirst{0};

std::vector<abi::EventType> async_events_of(const Bench& bench, ClientId client) {
  std::vector<abi::EventType> events;
  for (const Timed& timed : bench.log) {
    const auto* event = std::get_if<engine::AsyncEvent>(&timed.output);
    if (event != nullptr && event->client == client) events.push_back(event->type);
  }
  return events;
}

// ---- Verbs ------------------------------------------------------------------------------------

// ibv_get_async_event(3): "IBV_EVENT_DEVICE_FATAL CA is in FATAL state".
TEST(DeviceRemoval, IsAFatalEventForItsClientsOnly) {
  Pair pair;
  pair.bench.step(RemoveDevice{kFirst});
  EXPECT_EQ(async_events_of(pair.bench, pair.left.client.id()),
            std::vector{abi::EventType::kDeviceFatal});
  EXPECT_EQ(async_events_of(pair.bench, pair.right.client.id()), std::vector<abi::EventType>{});
  pair.bench.step(RemoveDevice{kFirst});
  EXPECT_EQ(async_events_of(pair.bench, pair.left.client.id()).size(), 1u) << "once";
  pair.bench.log.clear();
}

// A client that waits for completions on its channels will never get any, so it is notified once.
TEST(DeviceRemoval, IsToldToEachClientOfTheDevice) {
  Pair pair;
  const auto lost = [&] {
    std::vector<ClientId> clients;
    for (const auto& timed : std::exchange(pair.bench.log, {})) {
      const auto* output = std::get_if<DeviceLost>(&timed.output);
      if (output != nullptr) clients.push_back(output->client);
    }
    return clients;
  };
  pair.bench.step(RemoveDevice{kFirst});
  EXPECT_EQ(lost(), std::vector{pair.left.client.id()});
  pair.bench.step(RemoveDevice{kFirst});
  EXPECT_EQ(lost(), std::vector<ClientId>{});
  EXPECT_EQ(pair.left.client.command(abi::Op::kCreateChannel, {}).error, EIO);
  EXPECT_EQ(pair.right.client.command(abi::Op::kCreateChannel, {}).error, 0);
}

TEST(DeviceRemoval, FailsEveryCommandFromThenOn) {
  Pair pair;
  pair.bench.step(RemoveDevice{kFirst});
  pair.bench.log.clear();
  const auto error_of = [&](abi::Op op, uint32_t handle) {
    abi::Request::Body body{};
    body.object.handle = handle;
    return pair.bench.command(pair.left.client.id(), op, body).error;
  };
  EXPECT_EQ(error_of(abi::Op::kQueryDevice, 0), EIO);
  EXPECT_EQ(error_of(abi::Op::kAllocPd, 0), EIO);
  EXPECT_EQ(error_of(abi::Op::kDestroyCq, pair.left.send_cq), EIO);
  EXPECT_EQ(error_of(abi::Op::kDeallocPd, pair.left.pd), EIO);
}

TEST(DeviceRemoval, LaterRequestsNeverComplete) {
  Pair pair;
  pair.left.post_recv({.wr_id = 1, .sges = {pair.left.recv_sge(100)}});
  pair.bench.step(RemoveDevice{kFirst});
  pair.bench.log.clear();
  pair.left.post_recv({.wr_id = 2, .sges = {pair.left.recv_sge(100)}});
  pair.left.post_send({.wr_id = 3, .sges = {pair.left.send_sge(100)}});
  pair.bench.advance_to(std::chrono::minutes(1));
  EXPECT_TRUE(pair.bench.log.empty()) << "no completion, no violation";
}

TEST(DeviceRemoval, IsADeadNicForThePeer) {
  Pair pair;
  pair.bench.step(RemoveDevice{kFirst});
  pair.bench.log.clear();
  pair.right.post_send({.wr_id = 7, .sges = {pair.right.send_sge(100)}});
  pair.bench.advance_to(std::chrono::minutes(10));
  const auto completions = pair.take_right();
  ASSERT_EQ(completions.size(), 1u);
  EXPECT_EQ(completions[0].status, static_cast<uint32_t>(WcStatus::kRetryExcErr));
  pair.bench.log.clear();
}

TEST(DeviceRemoval, TakesAllObjectsAndLeavesTheOtherDevicesAlone) {
  Pair pair;
  pair.bench.step(RemoveDevice{kFirst});
  pair.bench.log.clear();
  const auto devices = pair.bench.engine().snapshot().devices;
  EXPECT_TRUE(devices[0].removed);
  EXPECT_EQ(
      devices[0].qps.size() + devices[0].cqs.size() + devices[0].mrs.size() + devices[0].pds.size(),
      0u);
  EXPECT_FALSE(devices[1].removed);
  EXPECT_EQ(devices[1].qps.size(), 1u);
  pair.bench.detach(pair.left.client.id());  // its program ends
  pair.bench.step(engine::SetPort{kFirst, true});
  EXPECT_EQ(pair.bench.engine().snapshot().devices[0].port_state, abi::PortState::kDown);
  EXPECT_TRUE(pair.bench.log.empty());
}

// ibv_import_device(3): objects that two contexts share are removed with the device, and the
// contexts can then be closed in any order.
TEST(DeviceRemoval, TakesWhatContextsShare) {
  Pair pair;
  const engine::ClientId other{77};
  pair.bench.attach(other, kFirst, pair.left.client.id());
  pair.bench.step(RemoveDevice{kFirst});
  EXPECT_EQ(async_events_of(pair.bench, other), std::vector{abi::EventType::kDeviceFatal});
  pair.bench.log.clear();
  EXPECT_TRUE(pair.bench.engine().snapshot().devices[0].pds.empty());
  pair.bench.detach(pair.left.client.id());
  pair.bench.detach(other);
}

// ---- librdmacm --------------------------------------------------------------------------------

class RemovalOfIds : public testing::Test {
 protected:
  uint32_t resolved(std::string_view destination, std::string_view source) {
    const uint32_t id = channel.create_id(kUid);
    EXPECT_EQ(channel.bind(id, ip(source)), 0);
    EXPECT_EQ(channel.resolve(id, ip(destination, 7471)), 0);
    EXPECT_EQ(channel.next_event().event, EventType::kAddrResolved);
    EXPECT_EQ(channel.resolve_route(id), 0);
    EXPECT_EQ(channel.next_event().event, EventType::kRouteResolved);
    return id;
  }
  static abi::ucma::ConnParam parameters(uint32_t qpn) {
    abi::ucma::ConnParam param{};
    param.qp_num = qpn;
    param.retry_count = 7;
    return param;
  }

  CmBench bench;
  EventChannel channel{bench, 1};
};

// rdma_get_cm_event(3): "RDMA_CM_EVENT_DEVICE_REMOVAL The local RDMA device associated with the
// rdma_cm_id has been removed. Upon receiving this event, the user must destroy the related
// rdma_cm_id."
TEST_F(RemovalOfIds, IsToldToEachIdOfTheDevice) {
  const uint32_t bound = channel.create_id(kUid), elsewhere = channel.create_id(kUid + 1),
                 wildcard = channel.create_id(kUid + 2);
  ASSERT_EQ(channel.bind(bound, ip("127.0.0.1", 7471)), 0);
  ASSERT_EQ(channel.listen(bound), 0);
  ASSERT_EQ(channel.bind(elsewhere, ip("127.0.0.2", 7471)), 0);
  ASSERT_EQ(channel.bind(wildcard, ip("0.0.0.0", 7472)), 0);
  ASSERT_EQ(channel.listen(wildcard), 0);
  bench.step(RemoveDevice{kFirst});
  const auto event = channel.next_event();
  EXPECT_EQ(event.event, EventType::kDeviceRemoval);
  EXPECT_EQ(event.uid, kUid);
  EXPECT_EQ(event.id, bound);
  EXPECT_EQ(channel.next_event().id, 0u) << "nobody else";
}

TEST_F(RemovalOfIds, OnlyAllowsTheirDestruction) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.bind(id, ip("127.0.0.1", 7471)), 0);
  bench.step(RemoveDevice{kFirst});
  EXPECT_EQ(channel.listen(id), ENXIO);
  EXPECT_EQ(channel.resolve(id, ip("127.0.0.2", 7471)), ENXIO);
  EXPECT_EQ(channel.ask(Command::kDisconnect, abi::ucma::Disconnect{id}), ENXIO);
  EXPECT_EQ(channel.destroy_id(id), 0);
  EXPECT_EQ(channel.destroy_id(id), ENOENT);
}

TEST_F(RemovalOfIds, AnIdThatIsNotAcceptedYetGetsNoEvent) {
  const uint32_t listener = channel.create_id(kUid);
  ASSERT_EQ(channel.bind(listener, ip("0.0.0.0", 7471)), 0);
  ASSERT_EQ(channel.listen(listener), 0);
  const uint32_t client = resolved("127.0.0.1", "127.0.0.2");
  ASSERT_EQ(channel.connect(client, parameters(17)), 0);
  const auto request = channel.next_event();
  ASSERT_EQ(request.event, EventType::kConnectRequest);
  bench.step(RemoveDevice{kFirst});
  EXPECT_EQ(channel.next_event().id, 0u);
  EXPECT_EQ(channel.accept(request.id, kUid, parameters(18)), ENXIO);
  EXPECT_EQ(channel.destroy_id(request.id), 0);
}

// rdma_get_cm_event(3): "RDMA_CM_EVENT_UNREACHABLE Generated on the active side to notify the user
// that the remote server is not reachable or unable to respond to a connection request."
TEST_F(RemovalOfIds, MakesThePeerUnreachable) {
  const uint32_t client = resolved("127.0.0.1", "127.0.0.2");
  bench.step(RemoveDevice{kFirst});
  ASSERT_EQ(channel.connect(client, parameters(17)), 0);
  bench.run_for(std::chrono::minutes(5));
  const auto event = channel.next_event();
  EXPECT_EQ(event.event, EventType::kUnreachable);
  EXPECT_EQ(static_cast<int32_t>(event.status), -ETIMEDOUT);
}

TEST_F(RemovalOfIds, EndsAConnectionAtItsOtherEndWhenThatDisconnects) {
  const uint32_t listener = channel.create_id(kUid);
  ASSERT_EQ(channel.bind(listener, ip("127.0.0.1", 7471)), 0);
  ASSERT_EQ(channel.listen(listener), 0);
  const uint32_t client = resolved("127.0.0.1", "127.0.0.2");
  ASSERT_EQ(channel.connect(client, parameters(17)), 0);
  const uint32_t server = channel.next_event().id;
  ASSERT_EQ(channel.accept(server, kUid + 1, parameters(18)), 0);
  EXPECT_EQ(channel.next_event().event, EventType::kConnectResponse);
  ASSERT_EQ(channel.establish(client), 0);
  EXPECT_EQ(channel.next_event().event, EventType::kEstablished);
  bench.step(RemoveDevice{kFirst});
  EXPECT_EQ(channel.next_event().id, listener);
  EXPECT_EQ(channel.next_event().id, server);
  EXPECT_EQ(channel.next_event().id, 0u) << "the other end has heard nothing";
  ASSERT_EQ(channel.ask(Command::kDisconnect, abi::ucma::Disconnect{client}), 0);
  bench.run_for(std::chrono::minutes(5));
  const auto event = channel.next_event();
  EXPECT_EQ(event.event, EventType::kDisconnected);
  EXPECT_EQ(static_cast<int32_t>(event.status), -ETIMEDOUT);
  // rdma_get_cm_event(3): "RDMA_CM_EVENT_TIMEWAIT_EXIT The QP associated with a connection has
  // exited its timewait state and is now ready to be re-used."
  EXPECT_EQ(channel.next_event().event, EventType::kTimewaitExit);
}

TEST_F(RemovalOfIds, TakesItsAddressesButNotTheOthers) {
  bench.step(RemoveDevice{kFirst});
  EXPECT_EQ(channel.bind(channel.create_id(kUid), ip("127.0.0.1")), ENODEV);
  const uint32_t id = channel.create_id(kUid);
  EXPECT_EQ(channel.resolve(id, ip("127.0.0.2", 7471)), 0);
  EXPECT_EQ(channel.next_event().event, EventType::kAddrResolved);
  EXPECT_EQ(channel.source(id).address, ip("127.0.0.2").address);
  bench.step(RemoveDevice{DeviceIndex{1}});
  EXPECT_EQ(channel.next_event().event, EventType::kDeviceRemoval);
  const uint32_t last = channel.create_id(kUid);
  EXPECT_EQ(channel.resolve(last, ip("127.0.0.2", 7471)), 0);
  const auto event = channel.next_event();
  EXPECT_EQ(event.event, EventType::kAddrError);
  EXPECT_EQ(static_cast<int32_t>(event.status), -ENODEV);
}

}  // namespace
}  // namespace rocemu::test
