// Tests the control protocol, with correct and with wrong messages, and with an engine that accepts
// every request.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "tests/daemon/client/client_session_fixture.h"
#include "tests/daemon/descriptor_limit.h"

namespace rocemu::daemon {
namespace {

/// A descriptor of a kind that no message needs. Another thread closes the copy that the session
/// received.
class StrangeDescriptor {
 public:
  StrangeDescriptor() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read_end_ = UniqueFd(ends[0]);
    write_end_ = UniqueFd(ends[1]);
  }
  int get() const { return write_end_.get(); }
  /// Closes the write end, and waits until all copies of it are closed. Returns false if that takes
  /// more than 30 s.
  bool is_closed_by_all() {
    write_end_.reset();
    pollfd entry{read_end_.get(), 0, 0};
    return poll(&entry, 1, 30'000) == 1 && (entry.revents & POLLHUP) != 0;
  }

 private:
  UniqueFd read_end_, write_end_;
};

TEST_F(ClientSessionTest, HelloAttachesAndGivesMemoryEventfdAndAsyncSocket) {
  const Received answer = hello();
  EXPECT_EQ(answer.reply.error, 0);
  EXPECT_EQ(answer.reply.body.hello.client, 1u);
  const abi::SharedRange& doorbells = answer.reply.body.hello.doorbells;
  EXPECT_EQ(doorbells.segment, 0u);
  EXPECT_EQ(doorbells.offset, 0u);
  EXPECT_EQ(doorbells.size, sizeof(abi::DoorbellRing));
  EXPECT_EQ(answer.reply.body.hello.clock_start_ns, clock.start_ns());
  EXPECT_EQ(answer.fds.size(), 3u);
  EXPECT_THAT(engine.inputs, ElementsAre("attach 1", "command"));
  struct stat status {};
  ASSERT_EQ(fstat(answer.fds[0].get(), &status), 0);
  EXPECT_EQ(status.st_size, static_cast<off_t>(answer.reply.body.hello.segment_size));
  EXPECT_NE(ftruncate(answer.fds[0].get(), 0), 0) << "a client could raise SIGBUS in the daemon";
}

// A rule for open_device can make the engine refuse a hello.
TEST_F(ClientSessionTest, AHelloThatTheEngineRefusesFailsAndLeavesNothing) {
  engine.answer = [](const abi::Request& asked) {
    abi::Reply reply{};
    reply.error = asked.op == Op::kHello ? EMFILE : 0;
    return reply;
  };
  const Received answer = hello();
  EXPECT_EQ(answer.reply.error, EMFILE);
  EXPECT_TRUE(answer.fds.empty());
  EXPECT_EQ(ended_because(), "");
}

TEST_F(ClientSessionTest, HelloNeedsTheClientsOwnEndOfTheConnection) {
  const abi::Request asked = request(Op::kHello);
  const UniqueFd mem_file(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  send(&asked, sizeof asked, {mem_file.get()});
  EXPECT_THAT(ended_because(), HasSubstr("file descriptors"));
}

TEST_F(ClientSessionTest, HelloHasNoOtherDescriptorsThanItMayHave) {
  const abi::Request asked = request(Op::kHello);
  const UniqueFd mem_file(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  send(&asked, sizeof asked, {socket.get(), mem_file.get(), mem_file.get()});
  EXPECT_THAT(ended_because(), HasSubstr("file descriptors"));
}

TEST_F(ClientSessionTest, TheMemoryOfTheProcessMayBeMissing) {
  const Received answer = ask(request(Op::kHello), {socket.get()});
  EXPECT_EQ(answer.reply.error, 0);
  EXPECT_EQ(session->client_end(), file_id(socket.get()));
}

TEST_F(ClientSessionTest, ARequestWhoseDescriptorsTheSystemHasNoRoomForIsRefusedAndNoMore) {
  hello();
  const UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  {
    const DescriptorLimit none;
    EXPECT_EQ(ask(request(Op::kDestroyCq), {null.get(), null.get()}).reply.error, ENFILE);
    const DescriptorLimit one(1);
    EXPECT_EQ(ask(request(Op::kDestroyCq), {null.get(), null.get()}).reply.error, ENFILE);
  }
  EXPECT_EQ(ended_because(), "not ended");
  EXPECT_EQ(ask(request(Op::kDestroyCq), {null.get(), null.get()}).reply.error, ENOENT)
      << "it has no such CQ";
  // A message with more descriptors than any request needs is an error of the client.
  send_many(request(Op::kDestroyCq), null.get(), 9);
  EXPECT_THAT(ended_because(), HasSubstr("too many file descriptors"));
}

TEST_F(ClientSessionTest, ObjectsThatKeepDescriptorsLeaveSomeForMessages) {
  hello();
  const DescriptorLimit few(20);  // some of these are reserved for descriptors in messages
  std::vector<UniqueFd> channels;
  for (int i = 0; i < 20; ++i) {
    Received answer = ask(request(Op::kCreateChannel));
    if (answer.reply.error != 0) {
      EXPECT_EQ(answer.reply.error, EMFILE);
      EXPECT_FALSE(channels.empty());
      return;
    }
    channels.push_back(std::move(answer.fds.at(0)));
    const UniqueFd another(open("/dev/null", O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(another) << "with " << channels.size() << " channels";
  }
  FAIL() << "there is no end of channels";
}

class ImportTest : public ClientSessionTest {
 protected:
  explicit ImportTest(uint32_t device = 0) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    other_socket = UniqueFd(ends[0]);
    other = std::make_unique<ClientSession>(
        ClientSession::Services{engine, loop, memory, owner, clock}, engine::ClientId{7},
        engine::DeviceIndex{device}, UniqueFd(ends[1]), PeerCredentials{getpid(), geteuid()});
    owner.other = other.get();
    owner.other_client_end = *file_id(other_socket.get());
  }
  int import(std::vector<int> fds) {
    abi::Request asked = request(Op::kHello);
    asked.body.hello.import = 1;
    return ask(asked, std::move(fds)).reply.error;
  }
  UniqueFd other_socket;
  std::unique_ptr<ClientSession> other;
};

TEST_F(ImportTest, SharesWithTheClientWhoseConnectionCameAlong) {
  const UniqueFd mem_file(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(import({socket.get(), mem_file.get(), other_socket.get()}), 0);
  EXPECT_THAT(engine.inputs, ElementsAre("attach 1 shares with 7", "command"));
}

TEST_F(ImportTest, NeedsNoMemoryFile) {
  EXPECT_EQ(import({socket.get(), other_socket.get()}), 0);
  EXPECT_THAT(engine.inputs, ElementsAre("attach 1 shares with 7", "command"));
}

TEST_F(ImportTest, FailsForAnotherDescriptorAndMayBeTriedAgain) {
  const UniqueFd mem_file(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(import({socket.get(), mem_file.get()}), EINVAL);
  EXPECT_TRUE(engine.inputs.empty());
  EXPECT_FALSE(session->is_attached());
  EXPECT_EQ(import({socket.get(), other_socket.get()}), 0);
}

class ImportOfAnotherDeviceTest : public ImportTest {
 protected:
  ImportOfAnotherDeviceTest() : ImportTest(1) {}
};

TEST_F(ImportOfAnotherDeviceTest, Fails) {
  EXPECT_EQ(import({socket.get(), other_socket.get()}), EINVAL);
}

TEST_F(ClientSessionTest, TheEventfdWakesTheSessionEachTime) {
  const Received answer = hello();
  for (int i = 0; i < 3; ++i) {
    const int before = owner.wakes;
    eventfd_write(answer.fds[1].get(), 1);
    loop.wait(kNow);
    EXPECT_EQ(owner.wakes, before + 1);
  }
  EXPECT_EQ(loop.wait(kNow), 0);
}

TEST_F(ClientSessionTest, GoodbyeIsNoError) {
  hello();
  socket.reset();
  loop.wait(kNow);
  EXPECT_EQ(ended_because(), "");
}

TEST_F(ClientSessionTest, GarbageEndsTheClient) {
  char garbage[sizeof(abi::Request)];
  std::memset(garbage, 0x5a, sizeof garbage);
  send(garbage, sizeof garbage);
  EXPECT_THAT(ended_because(), HasSubstr("not of the control protocol"));
}

TEST_F(ClientSessionTest, AShortMessageEndsTheClient) {
  const abi::Request hello_request = request(Op::kHello);
  send(&hello_request, sizeof hello_request - 1);
  EXPECT_THAT(ended_because(), HasSubstr("bytes instead of"));
}

TEST_F(ClientSessionTest, ATinyMessageEndsTheClient) {
  const abi::Request hello_request = request(Op::kHello);
  send(&hello_request, 3);
  EXPECT_THAT(ended_because(), HasSubstr("not of the control protocol"));
}

TEST_F(ClientSessionTest, ALongMessageEndsTheClient) {
  char long_message[2 * sizeof(abi::Request)] = {};
  const abi::Request hello_request = request(Op::kHello);
  std::memcpy(long_message, &hello_request, sizeof hello_request);
  send(long_message, sizeof hello_request + 1);
  EXPECT_THAT(ended_because(), HasSubstr("bytes instead of"));
}

TEST_F(ClientSessionTest, AVeryLongMessageEndsTheClient) {
  const std::vector<char> zeros(100'000);
  send(zeros.data(), zeros.size());
  EXPECT_THAT(ended_because(), HasSubstr("too long"));
}

TEST_F(ClientSessionTest, AHelloOfAnotherVersionGetsAnErrorReply) {
  abi::Request old = request(Op::kHello);
  old.version = abi::kVersion + 1;
  send(&old, sizeof old - 32);  // messages of another version may have another size
  const std::optional<Received> answer = receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->reply.error, EPROTO);
  EXPECT_EQ(answer->reply.version, abi::kVersion);
  EXPECT_THAT(ended_because(), HasSubstr("control protocol has version"));
}

TEST_F(ClientSessionTest, HelloComesFirst) {
  const abi::Request early = request(Op::kAllocPd);
  send(&early, sizeof early);
  EXPECT_THAT(ended_because(), HasSubstr("before the hello"));
}

TEST_F(ClientSessionTest, HelloComesOnce) {
  hello();
  const abi::Request again = request(Op::kHello);
  send(&again, sizeof again);
  EXPECT_THAT(ended_because(), HasSubstr("second hello"));
}

TEST_F(ClientSessionTest, UnknownOperationsAreRefused) {
  hello();
  EXPECT_EQ(ask(request(static_cast<Op>(999))).reply.error, EOPNOTSUPP);
  EXPECT_EQ(ask(request(static_cast<Op>(0))).reply.error, EOPNOTSUPP);
  EXPECT_EQ(ended_because(), "not ended");
}

TEST_F(ClientSessionTest, UnexpectedDescriptorsAreClosed) {
  const Received greeting = hello();
  StrangeDescriptor sent;
  ask(request(Op::kAllocPd), {sent.get(), sent.get(), sent.get()});
  EXPECT_TRUE(sent.is_closed_by_all());
  EXPECT_EQ(ended_because(), "not ended");
}

TEST_F(ClientSessionTest, MoreDescriptorsThanAnyMessageHasEndTheClientAndLeakNothing) {
  const Received greeting = hello();
  StrangeDescriptor sent;
  send_many(request(Op::kAllocPd), sent.get(), 20);
  EXPECT_THAT(ended_because(), HasSubstr("too many file descriptors"));
  EXPECT_TRUE(sent.is_closed_by_all());
}

TEST_F(ClientSessionTest, AClientThatDoesNotReadItsRepliesIsEnded) {
  hello();
  const abi::Request asked = request(Op::kAllocPd);
  for (int i = 0; i < 100'000 && !session->has_ended(); ++i) {
    while (send_message(socket.get(), std::as_bytes(std::span(&asked, 1)), {}) ==
           SendStatus::kFull) {
      loop.wait(kNow);
      if (session->has_ended()) break;
    }
    loop.wait(kNow);
  }
  EXPECT_THAT(ended_because(), HasSubstr("does not read"));
}

}  // namespace
}  // namespace rocemu::daemon
