// Tests which sessions are awake, and on which processors the table believes its clients to be.
#include "emulator/daemon/client/session_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tests/daemon/descriptor_limit.h"
#include "tests/daemon/recording_engine.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kOurs = 3, kOther = 4;  // processors

class SessionTableTest : public testing::Test {
 protected:
  SessionTableTest() {
    for (size_t i = 0; i < sockets.size(); ++i) {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
      sockets[i] = UniqueFd(ends[0]);
      auto session = std::make_unique<ClientSession>(
          ClientSession::Services{engine, loop, memory, table, clock}, table.next_id(),
          engine::DeviceIndex{0}, UniqueFd(ends[1]), PeerCredentials{getpid(), geteuid()});
      sessions[i] = session.get();
      table.add(std::move(session));
      ask(i, abi::Op::kHello);
      EXPECT_TRUE(sessions[i]->is_attached());
      table.wake(*sessions[i]);
    }
    table.awake().set_processor(kOurs);
  }

  abi::Reply ask(size_t i, abi::Op op) {
    abi::Request request{};
    request.magic = abi::kMagic;
    request.version = abi::kVersion;
    request.op = op;
    if (op == abi::Op::kCreateCq) request.body.create_cq.capacity = 16;
    const UniqueFd mem_file(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
    std::vector<int> fds;
    if (op == abi::Op::kHello) fds = {sockets[i].get(), mem_file.get()};
    EXPECT_EQ(send_message(sockets[i].get(), std::as_bytes(std::span(&request, 1)), fds),
              SendStatus::kOk);
    loop.wait(0ns);
    abi::Reply reply{};
    receive_message(sockets[i].get(), std::as_writable_bytes(std::span(&reply, 1)));
    EXPECT_EQ(reply.error, 0);
    return latest = reply;
  }
  uint32_t make_cq(size_t i) {
    engine.answer = [](const abi::Request&) {
      abi::Reply reply{};
      reply.body.create_cq.handle = 5;
      reply.body.create_cq.capacity = 16;
      return reply;
    };
    return ask(i, abi::Op::kCreateCq).body.create_cq.handle;
  }
  abi::DoorbellRing& ring(size_t i) { return sessions[i]->queues().doorbells(); }
  /// Writes to the client's ring that the client runs on this processor.
  void is_on(size_t i, uint32_t processor) { ring(i).client_processor = processor; }
  void arm(size_t i, uint32_t cq) {
    ring(i).entries[ring(i).producer % abi::kDoorbellEntries] = {abi::DoorbellKind::kCqArm, cq, 0};
    ++ring(i).producer;
  }
  bool sleeps(size_t i) { return ring(i).daemon_sleeping != 0; }
  void last_rang(size_t i, engine::Instant at) { sessions[i]->activity().last = at; }

  const Clock clock;
  EventLoop loop;
  RecordingEngine engine;
  ProcessMemory memory;
  SessionTable table{clock, 2};
  std::array<UniqueFd, 3> sockets;
  abi::Reply latest{};
  std::array<ClientSession*, 3> sessions{};
};

TEST_F(SessionTableTest, KnowsOnWhichSidesItsClientsAre) {
  const engine::Instant now(1s);
  for (size_t i = 0; i < 3; ++i) last_rang(i, now);
  for (size_t i = 0; i < 3; ++i) is_on(i, kOther);
  EXPECT_FALSE(table.awake().recent(now).beside);
  EXPECT_TRUE(table.awake().recent(now).elsewhere);
  is_on(1, kOurs);
  EXPECT_TRUE(table.awake().recent(now).beside);
  EXPECT_TRUE(table.awake().recent(now).elsewhere);
  last_rang(1, now - 101us);
  EXPECT_FALSE(table.awake().recent(now).beside) << "it may be doing anything by now";
}

TEST_F(SessionTableTest, KnowsWhetherAllBesideItGiveWay) {
  const engine::Instant now(1s);
  for (size_t i = 0; i < 3; ++i) last_rang(i, now);
  is_on(0, kOurs);
  is_on(1, kOurs);
  is_on(2, kOther);
  ring(0).giving_way = 1;
  EXPECT_FALSE(table.awake().recent(now).beside_gives_way);
  ring(1).giving_way = 2;
  EXPECT_TRUE(table.awake().recent(now).beside_gives_way);
}

// A client counts as one polling thread if it rang within the last millisecond, or as the number of
// its threads that yield at the same time if that is greater.
TEST_F(SessionTableTest, TellsClientsHowManyOfThemPoll) {
  engine::Instant now(1s);
  last_rang(0, now - 1ms);
  last_rang(1, now);
  last_rang(2, now - 1001us);
  table.count_pollers(now);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(ring(i).pollers_per_processor, 1u);
  ring(0).giving_way = 8;
  ring(2).giving_way = 5;
  table.count_pollers(now + 10us);
  EXPECT_EQ(ring(1).pollers_per_processor, 1u) << "not so often";
  ring(0).giving_way = ring(2).giving_way = 0;
  table.count_pollers(now + 1ms);
  EXPECT_EQ(ring(1).pollers_per_processor, 1u) << "the more seldom the more clients there are";
  table.count_pollers(now += 1030us);
  EXPECT_EQ(ring(1).pollers_per_processor, 7u) << "the most at once meanwhile";
  table.count_pollers(now += 1030us);
  EXPECT_EQ(ring(1).pollers_per_processor, 6u);
  for (int i = 0; i < 20; ++i) table.count_pollers(now += 1030us);
  EXPECT_EQ(ring(1).pollers_per_processor, 0u);
}

// The client may write any number into its ring, so the table limits the number that it uses.
TEST_F(SessionTableTest, AClientSaysThatVeryManyOfItsThreadsPoll) {
  ring(0).giving_way = ring(1).giving_way = UINT32_MAX;
  table.count_pollers(engine::Instant(1s));
  EXPECT_EQ(ring(2).pollers_per_processor, 512u);
}

TEST_F(SessionTableTest, DoesNotCountThreadsThatWaitForAnEvent) {
  const uint32_t cq = make_cq(0);
  is_on(0, kOurs);
  is_on(1, kOther);
  arm(0, cq);
  EXPECT_TRUE(table.pump());
  EXPECT_EQ(sessions[0]->end_reason(), "");
  const engine::Instant now = clock.real_now();
  for (size_t i = 0; i < 3; ++i) last_rang(i, now);
  EXPECT_FALSE(table.awake().recent(now).beside);
  EXPECT_TRUE(table.awake().recent(now).rung_beside);
  sessions[0]->deliver(engine::CompletionEvent{});
  EXPECT_TRUE(table.awake().recent(now).beside);
}

// A connection without a hello uses up a descriptor and a place in the table.
TEST_F(SessionTableTest, ConnectionsWithoutAHelloAreEndedAfterAWhileOrWhenThereAreTooMany) {
  std::vector<UniqueFd> clients;
  std::vector<ClientSession*> silent;
  const auto connect = [&] {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    clients.emplace_back(ends[0]);
    auto session = std::make_unique<ClientSession>(
        ClientSession::Services{engine, loop, memory, table, clock}, table.next_id(),
        engine::DeviceIndex{0}, UniqueFd(ends[1]), PeerCredentials{getpid(), geteuid()});
    silent.push_back(session.get());
    table.add(std::move(session));
  };
  EXPECT_EQ(table.silent().next_end(), std::nullopt) << "those of the fixture have said hello";
  connect();
  ASSERT_TRUE(table.silent().next_end());
  table.silent().end_due(*table.silent().next_end() - 1ns);
  EXPECT_FALSE(silent[0]->has_ended());
  table.silent().end_due(*table.silent().next_end());
  EXPECT_TRUE(silent[0]->has_ended());
  EXPECT_EQ(table.silent().next_end(), std::nullopt);
  {
    const DescriptorLimit limit(4 * 32);  // the quarter for such connections is more than 32
    for (int i = 0; i < 60; ++i) connect();
    EXPECT_TRUE(silent[1]->has_ended());
    EXPECT_FALSE(silent.back()->has_ended()) << "the oldest first";
  }
  EXPECT_TRUE(table.reap(engine, memory));
  for (ClientSession* session : sessions) EXPECT_FALSE(session->has_ended());
}

TEST_F(SessionTableTest, AClientThatWakesHasBusyClientsBesideIt) {
  const engine::Instant now(1s);
  last_rang(0, now - 1us);
  last_rang(1, now - 99us);
  last_rang(2, now - 5ms);
  table.awake().let_sleep(now, 0ns);
  EXPECT_FALSE(table.awake().any());
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(sleeps(i));
  table.awake().wake_busy();
  EXPECT_FALSE(sleeps(0));
  EXPECT_FALSE(sleeps(1));
  EXPECT_TRUE(sleeps(2));
  EXPECT_EQ(sessions[1]->activity().last, now - 99us) << "it has not rung";
  table.awake().let_sleep(now + 1ms, 500us);
  EXPECT_FALSE(table.awake().any());
}

}  // namespace
}  // namespace rocemu::daemon
