// Tests events of rdma_cm ids that rules raise (docs/scenarios.md, raise_cm).
#include <gtest/gtest.h>

#include <cerrno>

#include "emulator/scenario/scenario.h"
#include "tests/support/event_channel.h"

namespace rocemu::test {
namespace {

using abi::ucma::Command;
using abi::ucma::EventType;
using abi::ucma::PortSpace;

constexpr uint64_t kActiveUid = 1, kListenerUid = 2, kChildUid = 3, kGroupUid = 4;
constexpr uint16_t kPort = 7471;

class RaisedCmEvent : public testing::Test {
 protected:
  void add_rule(const std::string& rule) {
    bench.step(engine::AddRules{scenario::parse_rule(rule)});
  }
  void request_connection() {
    const uint32_t listener = passive.create_id(kListenerUid);
    ASSERT_EQ(passive.bind(listener, ip("127.0.0.2", kPort)), 0);
    ASSERT_EQ(passive.listen(listener), 0);
    const uint32_t id = active.create_id(kActiveUid);
    ASSERT_EQ(active.resolve(id, ip("127.0.0.2", kPort)), 0);
    ASSERT_EQ(active.next_event().event, EventType::kAddrResolved);
    ASSERT_EQ(active.resolve_route(id), 0);
    ASSERT_EQ(active.next_event().event, EventType::kRouteResolved);
    ASSERT_EQ(active.connect(id, parameters(17)), 0);
  }
  static abi::ucma::ConnParam parameters(uint32_t qpn) {
    abi::ucma::ConnParam param{};
    param.qp_num = qpn;
    return param;
  }

  CmBench bench;
  EventChannel active{bench, 1}, passive{bench, 2};
};

// Linux's ucma_event_handler() ignores ids without a context, such as that of a request before it
// is accepted. An event with the listener's uid would be counted for the listener, whose
// rdma_destroy_id(3) would then wait for ever.
TEST_F(RaisedCmEvent, IsNoneOfAnIdThatIsNotAccepted) {
  add_rule("{on: cm_event, event: CONNECT_REQUEST, do: {raise_cm: DISCONNECTED}}");
  request_connection();
  const auto request = passive.next_event();
  EXPECT_EQ(request.event, EventType::kConnectRequest);
  EXPECT_EQ(request.uid, kListenerUid);
  EXPECT_EQ(passive.next_event().id, 0u);
}

TEST_F(RaisedCmEvent, IsOfTheIdThatWasAccepted) {
  add_rule("{on: cm_event, event: ESTABLISHED, do: {raise_cm: DISCONNECTED}}");
  request_connection();
  const uint32_t child = passive.next_event().id;
  ASSERT_EQ(passive.accept(child, kChildUid, parameters(18)), 0);
  const auto response = active.next_event();
  ASSERT_EQ(response.event, EventType::kConnectResponse);
  ASSERT_EQ(active.establish(response.id), 0);
  ASSERT_EQ(passive.next_event().event, EventType::kEstablished);
  const auto raised = passive.next_event();
  EXPECT_EQ(raised.event, EventType::kDisconnected);
  EXPECT_EQ(raised.id, child);
  EXPECT_EQ(raised.uid, kChildUid);
}

// Linux, cma_netevent_work_handler(): the event's status is -ETIMEDOUT.
TEST_F(RaisedCmEvent, HasTheStatusOfAPeerThatIsUnreachable) {
  add_rule("{on: cm_event, event: CONNECT_RESPONSE, do: {raise_cm: UNREACHABLE}}");
  request_connection();
  ASSERT_EQ(passive.accept(passive.next_event().id, kChildUid, parameters(18)), 0);
  const auto response = active.next_event();
  ASSERT_EQ(response.event, EventType::kConnectResponse);
  EXPECT_EQ(response.status, 0u);
  const auto raised = active.next_event();
  EXPECT_EQ(raised.event, EventType::kUnreachable);
  EXPECT_EQ(static_cast<int32_t>(raised.status), -ETIMEDOUT);
}

// The uid in a MULTICAST_JOIN event is that of the group. In any other event, librdmacm takes the
// uid for that of an id.
TEST_F(RaisedCmEvent, IsOfTheIdThatJoinsAndNotOfTheGroup) {
  add_rule("{on: cm_event, event: MULTICAST_JOIN, do: {raise_cm: DEVICE_REMOVAL}}");
  const uint32_t other = active.create_id(kListenerUid, PortSpace::kUdp);
  const uint32_t id = active.create_id(kActiveUid, PortSpace::kUdp, abi::QpType::kUd);
  ASSERT_NE(other, id);
  ASSERT_EQ(active.bind(id, ip("127.0.0.1")), 0);
  abi::ucma::JoinMcast in{};
  in.uid = kGroupUid;
  in.id = id;
  in.flags = abi::ucma::JoinFlags::kFullMember;
  engine::cm::emit(ip("224.0.0.1"), in.address.bytes);
  in.address_size = static_cast<uint16_t>(ip("224.0.0.1").size());
  ASSERT_EQ(active.ask(Command::kJoinMcast, in), 0);
  const auto join = active.next_event();
  EXPECT_EQ(join.event, EventType::kMulticastJoin);
  EXPECT_EQ(join.uid, kGroupUid);
  const auto raised = active.next_event();
  EXPECT_EQ(raised.event, EventType::kDeviceRemoval);
  EXPECT_EQ(raised.id, id);
  EXPECT_EQ(raised.uid, kActiveUid);
}

}  // namespace
}  // namespace rocemu::test
