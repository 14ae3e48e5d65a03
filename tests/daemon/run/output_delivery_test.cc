// Tests when programs get the engine's outputs: immediately, or all together when the outputs are
// released.
#include "emulator/daemon/run/output_delivery.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <vector>

#include "tests/daemon/recording_engine.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;

/// Tests with a client that has a CQ, whose memory the test maps as the client's program would.
class OutputDeliveryTest : public testing::Test {
 protected:
  OutputDeliveryTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    socket = UniqueFd(ends[0]);
    auto session = std::make_unique<ClientSession>(
        ClientSession::Services{engine, loop, processes, sessions, clock}, client,
        engine::DeviceIndex{0}, UniqueFd(ends[1]), PeerCredentials{getpid(), geteuid()});
    sessions.add(std::move(session));
    ask(abi::Op::kHello);
    engine.answer = [](const abi::Request&) {
      abi::Reply reply{};
      reply.body.create_cq.handle = kCq.value;
      reply.body.create_cq.capacity = 16;
      return reply;
    };
    const abi::SharedRange range = ask(abi::Op::kCreateCq).body.create_cq.memory;
    const auto file = sessions.find(client)->queues().arena.file_of(range.segment);
    size = file->size;
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
    EXPECT_NE(memory, MAP_FAILED);
    ring = reinterpret_cast<abi::CqRing*>(static_cast<std::byte*>(memory) + range.offset);
  }
  ~OutputDeliveryTest() override { munmap(memory, size); }

  abi::Reply ask(abi::Op op) {
    abi::Request request{};
    request.magic = abi::kMagic;
    request.version = abi::kVersion;
    request.op = op;
    if (op == abi::Op::kCreateCq) request.body.create_cq.capacity = 16;
    const UniqueFd mem_file(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
    std::vector<int> fds;
    if (op == abi::Op::kHello) fds = {socket.get(), mem_file.get()};
    EXPECT_EQ(send_message(socket.get(), std::as_bytes(std::span(&request, 1)), fds),
              SendStatus::kOk);
    loop.wait(0ns);
    abi::Reply reply{};
    receive_message(socket.get(), std::as_writable_bytes(std::span(&reply, 1)));
    EXPECT_EQ(reply.error, 0);
    return reply;
  }

  void apply(engine::Output output) {
    std::vector<engine::Output> outputs;
    outputs.push_back(std::move(output));
    delivery.apply(outputs);
  }
  engine::Completion completion(uint64_t wr_id) const {
    engine::Completion one{};
    one.client = client;
    one.cq = kCq;
    one.cqe.wr_id = wr_id;
    return one;
  }

  static constexpr engine::ClientId client{1};
  static constexpr engine::CqId kCq{5};
  const Clock clock;
  EventLoop loop;
  RecordingEngine engine;
  ProcessMemory processes;
  SessionTable sessions{clock};
  CmSessionTable cm_sessions;
  ClientMemory client_memory{processes, sessions};
  OutputDelivery delivery{client_memory, sessions, cm_sessions, clock, nullptr};
  UniqueFd socket;
  void* memory = nullptr;
  size_t size = 0;
  abi::CqRing* ring = nullptr;
};

TEST_F(OutputDeliveryTest, PublishesCompletionsAtOnce) {
  apply(completion(7));
  EXPECT_EQ(ring->producer, 1u);
  EXPECT_FALSE(delivery.release_outputs()) << "nothing is held";
}

TEST_F(OutputDeliveryTest, HoldsCompletionsUntilTheyAreReleasedTogether) {
  delivery.hold_outputs();
  apply(completion(7));
  apply(completion(8));
  EXPECT_EQ(ring->producer, 0u);
  EXPECT_TRUE(delivery.release_outputs());
  EXPECT_EQ(ring->producer, 2u);
  EXPECT_FALSE(delivery.release_outputs()) << "all of it has been";
}

TEST_F(OutputDeliveryTest, BeginsARoundWithEachRelease) {
  delivery.hold_outputs();
  const uint32_t round = sessions.round();
  delivery.release_outputs();
  EXPECT_EQ(sessions.round(), round + 1);
}

TEST_F(OutputDeliveryTest, EndsAClientThatViolatedTheProtocolOnlyWhenThatIsReleased) {
  delivery.hold_outputs();
  apply(engine::ClientViolation{client, "a violation"});
  EXPECT_FALSE(sessions.find(client)->has_ended());
  delivery.release_outputs();
  EXPECT_EQ(sessions.find(client)->end_reason(), "a violation");
}

TEST_F(OutputDeliveryTest, DropsOutputsForClientsAndCqsThatAreGone) {
  engine::Completion other = completion(7);
  other.cq = engine::CqId{6};
  apply(other);
  other.client = engine::ClientId{2};
  apply(other);
  apply(engine::ClientViolation{engine::ClientId{2}, "a violation"});
  EXPECT_EQ(ring->producer, 0u);
}

TEST_F(OutputDeliveryTest, ReportsADeviceThatChangedWhenTheOutputsHaveBeenCleared) {
  std::vector<engine::DeviceIndex> changed;
  delivery.on_device_changed([&](engine::DeviceIndex index) { changed.push_back(index); });
  delivery.hold_outputs();  // a changed device is not visible to programs, so it is not held
  apply(engine::DeviceChanged{engine::DeviceIndex{1}});
  EXPECT_TRUE(changed.empty());
  delivery.report_changed_devices();
  EXPECT_EQ(changed, std::vector{engine::DeviceIndex{1}});
  delivery.report_changed_devices();
  EXPECT_EQ(changed.size(), 1u);
}

TEST_F(OutputDeliveryTest, KeepsTheLatestCompletionsForAReport) {
  EXPECT_EQ(delivery.recent(), nullptr);
  delivery.keep_recent();
  apply(completion(7));
  ASSERT_NE(delivery.recent(), nullptr);
  EXPECT_EQ(delivery.recent()->completions().size(), 1u);
}

TEST_F(OutputDeliveryTest, WakesAThreadThatWaitsForMoreCompletionsThanCome) {
  ring->wake_at = 10;
  ring->waiting = 1;
  apply(completion(1));
  EXPECT_EQ(ring->waiting, 1u);
  EXPECT_NE(ring->watched, 0u);
  delivery.watched_cqs().end_all();
  EXPECT_EQ(ring->waiting, 0u);
  EXPECT_EQ(ring->watched, 0u);
  ring->waiting = 1;
  delivery.watched_cqs().end_all();
  EXPECT_EQ(ring->waiting, 1u) << "no completion has come since";
}

TEST_F(OutputDeliveryTest, WakesAThreadInAQuietCqWhileOtherClientsKeepTheDaemonBusy) {
  apply(completion(1));
  ring->wake_at = 10;
  ring->waiting = 1;
  delivery.watched_cqs().end_quiet();
  EXPECT_EQ(ring->waiting, 1u) << "a completion has just come";
  delivery.watched_cqs().end_quiet();
  EXPECT_EQ(ring->waiting, 0u);
  EXPECT_EQ(ring->watched, 0u);
}

TEST_F(OutputDeliveryTest, ForgetsAWatchedCqThatIsGone) {
  delivery.watched_cqs().add(client, engine::CqId{6});
  delivery.watched_cqs().end_quiet();
  delivery.watched_cqs().add(engine::ClientId{77}, kCq);
  delivery.watched_cqs().end_all();
  EXPECT_EQ(ring->watched, 0u);
}

}  // namespace
}  // namespace rocemu::daemon
