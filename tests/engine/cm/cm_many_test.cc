// Tests many connections: at the same time, half open, and one after the other.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cerrno>

#include "tests/support/event_channel.h"

namespace rocemu::test {
namespace {

using abi::ucma::EventType;

constexpr uint64_t kUid = 0x1234'5678'9abc'def0;

class ManyConnections : public testing::Test {
 protected:
  void SetUp() override {
    listener = passive.create_id(kUid);
    ASSERT_EQ(passive.bind(listener, ip("127.0.0.2", 7471)), 0);
    ASSERT_EQ(passive.listen(listener, 1000), 0);
  }

  /// Requests a connection with a new id, and returns the id. The passive side's next event has the
  /// id of the new connection.
  uint32_t connect() {
    const uint32_t id = active.create_id(kUid);
    EXPECT_EQ(active.resolve(id, ip("127.0.0.2", 7471)), 0);
    EXPECT_EQ(active.next_event().event, EventType::kAddrResolved);
    EXPECT_EQ(active.resolve_route(id), 0);
    EXPECT_EQ(active.next_event().event, EventType::kRouteResolved);
    EXPECT_EQ(active.connect(id, parameters()), 0);
    return id;
  }

  void connect_and_disconnect() {
    const uint32_t client = connect();
    const uint32_t server = passive.next_event().id;
    ASSERT_EQ(passive.accept(server, kUid, parameters()), 0);
    ASSERT_EQ(active.next_event().event, EventType::kConnectResponse);
    ASSERT_EQ(active.establish(client), 0);
    ASSERT_EQ(passive.next_event().event, EventType::kEstablished);
    ASSERT_EQ(active.ask(abi::ucma::Command::kDisconnect, abi::ucma::Disconnect{client}), 0);
    ASSERT_EQ(passive.next_event().event, EventType::kDisconnected);
    ASSERT_EQ(passive.ask(abi::ucma::Command::kDisconnect, abi::ucma::Disconnect{server}), 0);
    ASSERT_EQ(active.next_event().event, EventType::kDisconnected);
    ASSERT_EQ(active.destroy_id(client), 0);
    ASSERT_EQ(passive.destroy_id(server), 0);
  }

  /// Returns how many bytes of the heap are in use after all timewaits have ended.
  size_t memory_at_rest() {
    bench.run_for(std::chrono::minutes(2));
    bench.events.clear();
    return mallinfo2().uordblks;
  }

  CmBench bench;
  EventChannel active{bench, 1}, passive{bench, 2};
  uint32_t listener = 0;

 private:
  // Returns parameters with a new QP number, since a QP has one connection at a time (IBTA vol 1,
  // 12.9.8.3.1).
  abi::ucma::ConnParam parameters() {
    abi::ucma::ConnParam param{};
    param.qp_num = ++last_qpn_ & 0xffffff;
    param.retry_count = 7;
    return param;
  }
  uint32_t last_qpn_ = 16;
};

TEST_F(ManyConnections, TenThousandLeaveTheMemoryWhereItWas) {
  // Numbers are not reused immediately, so the amount of memory is stable only after some
  // connections.
  for (int i = 0; i < 3000 && !HasFatalFailure(); ++i) connect_and_disconnect();
  const size_t before = memory_at_rest();
  for (int i = 0; i < 10'000 && !HasFatalFailure(); ++i) connect_and_disconnect();
  EXPECT_LE(memory_at_rest(), before + 16 * 1024);
}

TEST_F(ManyConnections, AThousandMayBeHalfOpen) {
  std::vector<uint32_t> servers;
  for (int i = 0; i < 1000; ++i) {
    connect();
    const auto event = passive.next_event();
    ASSERT_EQ(event.event, EventType::kConnectRequest);
    servers.push_back(event.id);
  }
  // No request is answered, so each connection ends with a timeout, independently at both ends.
  bench.run_for(std::chrono::minutes(5));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(active.next_event().event, EventType::kUnreachable);
  EXPECT_EQ(active.next_event().id, 0u);
  // The passive program got no event, since it had not accepted any request. It is now too late to
  // accept one.
  for (const uint32_t server : servers) {
    EXPECT_EQ(passive.accept(server, kUid, {}), EINVAL);
    EXPECT_EQ(passive.destroy_id(server), 0);
  }
  connect_and_disconnect();
}

TEST_F(ManyConnections, AProcessThatDiesRejectsItsHalfOpenConnections) {
  for (int i = 0; i < 1000; ++i) connect();
  passive.close();
  for (int i = 0; i < 1000; ++i) {
    const auto event = active.next_event();
    ASSERT_EQ(event.event, EventType::kRejected);
    ASSERT_EQ(event.status, 28u) << "IBTA vol 1, 12.6.7.2: consumer reject";
  }
}

}  // namespace
}  // namespace rocemu::test
