// The control protocol, spoken well and badly, against an engine that says yes to everything.
#include "emulator/daemon/client/client_session.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "tests/daemon/descriptor_limit.h"
#include "tests/daemon/recording_engine.h"

namespace rocemu::daemon {
namespace {

using abi::Op;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr engine::Duration kNow{0};

class Owner : public SessionOwner {
 public:
  void wake(ClientSession&) override { ++wakes; }
  void ended(ClientSession&) override { ++ends; }
  ClientSession* find_by_client_end(const FileId& client_end) override {
    return client_end == other_client_end ? other : nullptr;
  }
  FileId other_client_end{};
  ClientSession* other = nullptr;
  int wakes = 0;
  int ends = 0;
};

/// While it lives, 128 GiB of memory cannot be had.
class AddressSpaceLimit {
 public:
  AddressSpaceLimit() {
    EXPECT_EQ(getrlimit(RLIMIT_AS, &before_), 0);
    rlimit little = before_;
    little.rlim_cur = std::min(before_.rlim_max, rlim_t{64} << 30);
    EXPECT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  }
  ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

/// A descriptor of a kind that no message has to have, so that another thread closes what was sent.
class StrangeDescriptor {
 public:
  StrangeDescriptor() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    read_end_ = UniqueFd(ends[0]);
    write_end_ = UniqueFd(ends[1]);
  }
  int get() const { return write_end_.get(); }
  /// Closes it and waits until nobody has it.
  bool is_closed_by_all() {
    write_end_.reset();
    pollfd entry{read_end_.get(), 0, 0};
    return poll(&entry, 1, 30'000) == 1 && (entry.revents & POLLHUP) != 0;
  }

 private:
  UniqueFd read_end_, write_end_;
};

struct Received {
  abi::Reply reply;
  std::vector<UniqueFd> fds;
};

class ClientSessionTest : public testing::Test {
 protected:
  ClientSessionTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    socket = UniqueFd(ends[0]);
    session = std::make_unique<ClientSession>(
        ClientSession::Services{engine, loop, memory, owner, clock}, engine::ClientId{1},
        engine::DeviceIndex{0}, UniqueFd(ends[1]), PeerCredentials{getpid(), geteuid()});
  }

  static abi::Request request(Op op) {
    abi::Request made{};
    made.magic = abi::kMagic;
    made.version = abi::kVersion;
    made.op = op;
    made.sequence = 77;
    return made;
  }
  void send(const void* data, size_t size, std::vector<int> fds = {}) {
    ASSERT_EQ(send_message(socket.get(), {static_cast<const std::byte*>(data), size}, fds),
              SendStatus::kOk);
    loop.wait(kNow);
  }
  /// With the descriptor `count` times: more than send_message() sends.
  void send_many(abi::Request asked, int fd, size_t count) {
    const std::vector<int> fds(count, fd);
    const size_t size = count * sizeof(int);
    std::vector<cmsghdr> control(CMSG_SPACE(size) / sizeof(cmsghdr) + 1);
    iovec data{&asked, sizeof asked};
    msghdr header{};
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(size);
    cmsghdr* part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(part), fds.data(), size);
    ASSERT_GT(sendmsg(socket.get(), &header, MSG_NOSIGNAL), 0);
    loop.wait(kNow);
  }
  std::optional<Received> receive() {
    Received answer{};
    Message message =
        receive_message(socket.get(), std::as_writable_bytes(std::span(&answer.reply, 1)));
    if (message.status != Message::Status::kOk) return std::nullopt;
    EXPECT_EQ(message.size, sizeof answer.reply);
    answer.fds = std::move(message.fds);
    return answer;
  }
  Received ask(const abi::Request& asked, std::vector<int> fds = {}) {
    send(&asked, sizeof asked, std::move(fds));
    std::optional<Received> answer = receive();
    if (!answer) {
      ADD_FAILURE() << "no answer; ended: " << session->end_reason();
      return {};
    }
    EXPECT_EQ(answer->reply.op, asked.op);
    EXPECT_EQ(answer->reply.sequence, 77u);
    return std::move(*answer);
  }
  Received hello() {
    const UniqueFd mem_file(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
    return ask(request(Op::kHello), {socket.get(), mem_file.get()});
  }
  std::string ended_because() {
    EXPECT_EQ(owner.ends, session->has_ended() ? 1 : 0);
    return session->has_ended() ? session->end_reason() : "not ended";
  }
  /// How many descriptors of this process are of the same file. (Of others, threads may still close
  /// some that earlier tests sent.)
  static long descriptors_of(int fd) {
    struct stat wanted {};
    EXPECT_EQ(fstat(fd, &wanted), 0);
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::count_if(begin(all), end(all), [&](const auto& one) {
      struct stat status {};
      return stat(one.path().c_str(), &status) == 0 && status.st_dev == wanted.st_dev &&
             status.st_ino == wanted.st_ino;
    });
  }

  const Clock clock;
  EventLoop loop;
  RecordingEngine engine;
  ProcessMemory memory;
  Owner owner;
  UniqueFd socket;
  std::unique_ptr<ClientSession> session;
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

// A rule for open_device: the engine knows.
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
  // More than any request has, on the other hand, is a mistake of the client's.
  send_many(request(Op::kDestroyCq), null.get(), 9);
  EXPECT_THAT(ended_because(), HasSubstr("too many file descriptors"));
}

TEST_F(ClientSessionTest, WhatStaysOpenIsRefusedBeforeTheLastDescriptorsAreTaken) {
  hello();
  const DescriptorLimit few(20);  // of which some are for messages
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

TEST_F(ClientSessionTest, AnotherVersionIsToldSo) {
  abi::Request old = request(Op::kHello);
  old.version = abi::kVersion + 1;
  send(&old, sizeof old - 32);  // its messages may have another size
  const std::optional<Received> answer = receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->reply.error, EPROTO);
  EXPECT_EQ(answer->reply.version, abi::kVersion);
  EXPECT_THAT(ended_because(), HasSubstr("speaks version"));
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

TEST_F(ClientSessionTest, ASegmentIsThereForTheAskingAndCannotBeShrunk) {
  const Received greeting = hello();
  abi::Request open = request(Op::kOpenSegment);
  const Received answer = ask(open);
  EXPECT_EQ(answer.reply.body.open_segment.size, greeting.reply.body.hello.segment_size);
  ASSERT_EQ(answer.fds.size(), 1u);
  EXPECT_EQ(file_id(answer.fds[0].get()), file_id(greeting.fds[0].get()));
  EXPECT_NE(fcntl(answer.fds[0].get(), F_GET_SEALS) & F_SEAL_SHRINK, 0);
  open.body.open_segment.segment = 1;
  EXPECT_EQ(ask(open).reply.error, EINVAL);
}

TEST_F(ClientSessionTest, TheQueuesOfAQpLieInItsMemory) {
  hello();
  engine.answer = [](const abi::Request&) {
    abi::Reply reply{};
    reply.body.create_qp.qpn = 9;
    reply.body.create_qp.cap = {100, 10, 2, 3, 0};
    return reply;
  };
  const Received answer = ask(request(Op::kCreateQp));
  EXPECT_TRUE(answer.fds.empty());
  const auto& made = answer.reply.body.create_qp;
  EXPECT_EQ(made.send.slots, 128u);
  EXPECT_EQ(made.send.stride, abi::send_stride(2, 0));
  EXPECT_EQ(made.recv.slots, 16u);
  EXPECT_EQ(made.recv.stride, abi::recv_stride(3));
  EXPECT_LE(made.recv.offset + made.recv.slots * made.recv.stride, made.memory.size);
  EXPECT_EQ(made.memory.segment, 0u);
  EXPECT_GE(made.memory.offset, sizeof(abi::DoorbellRing));
  EXPECT_NE(session->queues().qps.find(9), nullptr);
  ask([] {
    abi::Request destroy = request(Op::kDestroyQp);
    destroy.body.object.handle = 9;
    return destroy;
  }());
  EXPECT_EQ(session->queues().qps.find(9), nullptr);
}

TEST_F(ClientSessionTest, WithoutMemoryTheObjectIsDestroyedAgain) {
  hello();
  engine.answer = [](const abi::Request&) {
    abi::Reply reply{};
    reply.body.create_cq.handle = 4;
    reply.body.create_cq.capacity = 0x8000'0000;  // 128 GiB
    return reply;
  };
  const AddressSpaceLimit limit;
  const Received answer = ask(request(Op::kCreateCq));
  EXPECT_EQ(answer.reply.error, ENOMEM);
  EXPECT_TRUE(answer.fds.empty());
  EXPECT_THAT(engine.commands, ElementsAre(Op::kHello, Op::kCreateCq, Op::kDestroyCq));
}

TEST_F(ClientSessionTest, TheReceiveRingOfAnSrqLiesInItsMemory) {
  const Received greeting = hello();
  engine.answer = [](const abi::Request& asked) {
    abi::Reply reply{};
    if (asked.op != Op::kCreateSrq) return reply;
    reply.body.create_srq.handle = 6;
    reply.body.create_srq.max_wr = 100;
    reply.body.create_srq.max_sge = 2;
    return reply;
  };
  abi::Request create = request(Op::kCreateSrq);
  create.body.create_srq.user_handle = 0xabc;
  const Received answer = ask(create);
  const auto& made = answer.reply.body.create_srq;
  EXPECT_EQ(made.recv.slots, 128u);
  EXPECT_EQ(made.recv.stride, abi::recv_stride(2));
  EXPECT_LE(made.recv.offset + made.recv.slots * made.recv.stride, made.memory.size);

  // ibv_destroy_srq(3) waits for the events that were read, and for no others.
  for (int i = 0; i < 2; ++i) {
    session->deliver(engine::AsyncEvent{{1}, abi::EventType::kSrqLimitReached, 0xabc});
  }
  abi::AsyncEventRecord record{};
  ASSERT_EQ(recv(greeting.fds[2].get(), &record, sizeof record, MSG_DONTWAIT), 16);
  abi::Request destroy = request(Op::kDestroySrq);
  destroy.body.object.handle = 6;
  EXPECT_EQ(ask(destroy, {greeting.fds[2].get()}).reply.body.destroyed.async_events, 1u);
  EXPECT_EQ(session->queues().srqs.find(6), nullptr);
  EXPECT_EQ(ask(destroy).reply.error, ENOENT);
}

TEST_F(ClientSessionTest, AnXrcTargetQpHasNoRingsAndAReferenceForEachTimeItIsOpened) {
  const Received greeting = hello();
  engine.answer = [](const abi::Request& asked) {
    abi::Reply reply{};
    if (asked.op == Op::kOpenQp) reply.body.open_qp.qpn = asked.body.open_qp.qpn;
    return reply;
  };
  for (const uint64_t user_handle : {0xau, 0xbu}) {
    abi::Request open = request(Op::kOpenQp);
    open.body.open_qp.qpn = 9;
    open.body.open_qp.user_handle = user_handle;
    EXPECT_TRUE(ask(open).fds.empty());
    session->deliver(engine::AsyncEvent{{1}, abi::EventType::kQpFatal, user_handle});
  }
  abi::AsyncEventRecord record{};
  ASSERT_EQ(recv(greeting.fds[2].get(), &record, sizeof record, MSG_DONTWAIT), 16);
  EXPECT_EQ(record.element, 0xau);

  abi::Request destroy = request(Op::kDestroyQp);
  destroy.body.object.handle = 9;
  destroy.body.object.user_handle = 0xc;
  EXPECT_EQ(ask(destroy).reply.error, ENOENT);
  destroy.body.object.user_handle = 0xb;
  EXPECT_EQ(ask(destroy, {greeting.fds[2].get()}).reply.body.destroyed.async_events, 0u);
  destroy.body.object.user_handle = 0xa;
  EXPECT_EQ(ask(destroy, {greeting.fds[2].get()}).reply.body.destroyed.async_events, 1u);
  EXPECT_EQ(session->queues().qps.find(9), nullptr);
}

TEST_F(ClientSessionTest, NobodyDestroysQueuesOfWhichAnotherHasTheMemory) {
  hello();
  for (const Op op : {Op::kDestroyCq, Op::kDestroyQp, Op::kDestroySrq, Op::kResizeCq}) {
    EXPECT_EQ(ask(request(op)).reply.error, ENOENT);
  }
  EXPECT_THAT(engine.commands, ElementsAre(Op::kHello));
}

class ResizeCqTest : public ClientSessionTest {
 protected:
  ResizeCqTest() {
    engine.answer = [](const abi::Request& asked) {
      abi::Reply reply{};
      reply.body.create_cq.handle = 4;
      reply.body.create_cq.capacity =
          asked.op == Op::kResizeCq ? asked.body.resize_cq.capacity : 16;
      return reply;
    };
    segment = std::move(hello().fds.at(0));
    EXPECT_EQ(ask(request(Op::kCreateCq)).reply.error, 0);
    abi::Cqe cqe{};
    cqe.wr_id = 42;
    cq().add(cqe);
  }
  UniqueFd segment;
  CompletionQueue& cq() { return *session->queues().cqs.find(4); }
  static abi::Request resize(uint32_t capacity) {
    abi::Request asked = request(Op::kResizeCq);
    asked.body.resize_cq.handle = 4;
    asked.body.resize_cq.capacity = capacity;
    return asked;
  }
};

TEST_F(ResizeCqTest, GivesANewMemoryWithWhatWasNotTaken) {
  const Received answer = ask(resize(100));
  EXPECT_EQ(answer.reply.error, 0);
  const auto& made = answer.reply.body.create_cq;
  EXPECT_EQ(made.capacity, 100u);
  EXPECT_EQ(made.memory.size, cq_memory_size(100));
  ASSERT_EQ(made.memory.segment, 0u);
  abi::Cqe cqe;
  ASSERT_EQ(pread(segment.get(), &cqe, sizeof cqe,
                  static_cast<off_t>(made.memory.offset + sizeof(abi::CqRing))),
            static_cast<ssize_t>(sizeof cqe));
  EXPECT_EQ(cqe.wr_id, 42u);
}

TEST_F(ResizeCqTest, LeavesTheOldOneIfTheEngineRefuses) {
  engine.answer = [](const abi::Request&) {
    abi::Reply reply{};
    reply.error = EINVAL;
    return reply;
  };
  EXPECT_EQ(ask(resize(100)).reply.error, EINVAL);
  EXPECT_EQ(cq().capacity(), 16u);
}

TEST_F(ResizeCqTest, LeavesTheOldOneIfThereIsNoMemory) {
  std::vector<uint32_t> capacities;
  engine.answer = [&](const abi::Request& asked) {
    abi::Reply reply{};
    reply.body.create_cq.capacity = asked.body.resize_cq.capacity;
    capacities.push_back(asked.body.resize_cq.capacity);
    return reply;
  };
  const AddressSpaceLimit limit;
  const Received answer = ask(resize(0x8000'0000));  // 128 GiB
  EXPECT_EQ(answer.reply.error, ENOMEM);
  EXPECT_TRUE(answer.fds.empty());
  EXPECT_THAT(capacities, ElementsAre(0x8000'0000u, 16u));
  EXPECT_EQ(cq().capacity(), 16u);
}

TEST_F(ClientSessionTest, LendsOneMemoryFileAtATime) {
  constexpr uint64_t kAddress = 0x10000, kSize = 4096;
  const auto memory_file = [](int seals) {
    UniqueFd file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(file.get(), kSize), 0);
    EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, seals), 0);
    return file;
  };
  const UniqueFd sealed = memory_file(F_SEAL_SHRINK), unsealed = memory_file(F_SEAL_GROW);
  hello();
  abi::Request lend = request(Op::kLendMemory);
  lend.body.lend_memory = {.address = kAddress, .length = kSize};
  EXPECT_EQ(ask(lend).reply.error, EINVAL);
  EXPECT_EQ(ask(lend, {sealed.get(), sealed.get()}).reply.error, EINVAL);
  EXPECT_EQ(ask(lend, {unsealed.get()}).reply.error, EINVAL);
  EXPECT_EQ(ask(lend, {sealed.get()}).reply.error, 0);
  EXPECT_EQ(descriptors_of(sealed.get()), 1) << "what is mapped needs no descriptor";

  std::array<uint8_t, 5> bytes{1, 2, 3, 4, 5}, seen{};
  const engine::RemoteRange range{kAddress + 7, bytes.size()};
  const std::span<const uint8_t> from[] = {bytes};
  EXPECT_EQ(memory.write(engine::ClientId{1}, {&range, 1}, from), engine::MemoryResult::kDone);
  EXPECT_EQ(pread(sealed.get(), seen.data(), seen.size(), 7), static_cast<ssize_t>(seen.size()));
  EXPECT_EQ(seen, bytes);

  abi::Request take_back = request(Op::kTakeBackMemory);
  take_back.body.lend_memory.address = kAddress;
  EXPECT_EQ(ask(take_back).reply.error, 0);
  EXPECT_EQ(ask(take_back).reply.error, EINVAL);
  EXPECT_EQ(memory.write(engine::ClientId{1}, {&range, 1}, from), engine::MemoryResult::kFault);
  EXPECT_EQ(ended_because(), "not ended");
}

TEST_F(ClientSessionTest, ACqNeedsAChannelOfItsOwnClient) {
  hello();
  abi::Request asked = request(Op::kCreateCq);
  asked.body.create_cq.channel_inode = 12345;
  EXPECT_EQ(ask(asked).reply.error, EINVAL);
  EXPECT_THAT(engine.commands, ElementsAre(Op::kHello));
}

class DestroyCqTest : public ClientSessionTest {
 protected:
  DestroyCqTest() {
    engine.answer = [](const abi::Request& asked) {
      abi::Reply reply{};
      reply.body.create_cq.handle = 4;
      reply.body.create_cq.capacity = 16;
      if (asked.op != Op::kCreateCq) reply.body = {};
      return reply;
    };
    Received greeting = hello();
    async = std::move(greeting.fds.at(2));
    Received made = ask(request(Op::kCreateChannel));
    channel = std::move(made.fds.at(0));
    inode = made.reply.body.create_channel.inode;
    struct stat status {};
    EXPECT_EQ(fstat(channel.get(), &status), 0);
    EXPECT_EQ(status.st_ino, inode);
    abi::Request create = request(Op::kCreateCq);
    create.body.create_cq.channel_inode = inode;
    create.body.create_cq.user_handle = 0xabc;
    EXPECT_EQ(ask(create).reply.error, 0);
  }

  void complete() { session->deliver(engine::CompletionEvent{{1}, {4}, {inode}, 0xabc}); }
  void fail() { session->deliver(engine::AsyncEvent{{1}, abi::EventType::kCqErr, 0xabc}); }
  decltype(abi::Reply::Body::destroyed) destroy(std::vector<int> fds) {
    abi::Request asked = request(Op::kDestroyCq);
    asked.body.object.handle = 4;
    return ask(asked, std::move(fds)).reply.body.destroyed;
  }

  UniqueFd async;
  UniqueFd channel;
  uint64_t inode = 0;
};

TEST_F(DestroyCqTest, CountsEventsThatWereReadAndTakesBackTheOthers) {
  for (int i = 0; i < 3; ++i) complete();
  fail();
  char record[16];
  ASSERT_EQ(recv(channel.get(), record, sizeof record, MSG_DONTWAIT), 8);
  const auto destroyed = destroy({channel.get(), async.get()});
  EXPECT_EQ(destroyed.completion_events, 1u);
  EXPECT_EQ(destroyed.async_events, 0u);
  EXPECT_EQ(recv(channel.get(), record, sizeof record, MSG_DONTWAIT), -1);
  EXPECT_EQ(recv(async.get(), record, sizeof record, MSG_DONTWAIT), -1);
}

TEST_F(DestroyCqTest, TakesTheDescriptorsInAnyOrder) {
  complete();
  fail();
  const auto destroyed = destroy({async.get(), channel.get()});
  EXPECT_EQ(destroyed.completion_events, 0u);
  EXPECT_EQ(destroyed.async_events, 0u);
}

TEST_F(DestroyCqTest, ReadsFromNoDescriptorButItsOwn) {
  complete();
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const UniqueFd mine(ends[0]), other(ends[1]);
  ASSERT_EQ(write(mine.get(), "12345678", 8), 8);
  EXPECT_EQ(destroy({other.get()}).completion_events, 1u);
  char record[8];
  EXPECT_EQ(recv(other.get(), record, sizeof record, MSG_DONTWAIT), 8) << "was read by the daemon";
}

TEST_F(DestroyCqTest, AChannelClosedBeforeIsNoTrouble) {
  complete();
  channel.reset();
  loop.wait(kNow);
  complete();
  EXPECT_EQ(destroy({async.get()}).completion_events, 0u);
}

TEST_F(DestroyCqTest, DoorbellsRungBeforeARequestAreHandledBeforeIt) {
  auto& ring = session->queues().doorbells();
  constexpr uint32_t kBells = 2 * ClientSession::kPumpBudget;
  for (uint32_t i = 0; i < kBells; ++i) ring.entries[i] = {abi::DoorbellKind::kCqArm, 4, 0};
  ring.producer.store(kBells);
  engine.inputs.clear();
  abi::Request asked = request(Op::kDestroyCq);
  asked.body.object.handle = 4;
  send(&asked, sizeof asked);
  EXPECT_FALSE(receive()) << "one turn is not enough for that many doorbells";
  do session->note_doorbells();
  while (session->pump());
  EXPECT_TRUE(receive());
  ASSERT_EQ(engine.inputs.size(), kBells + 1);
  EXPECT_EQ(engine.inputs.back(), "command");
  EXPECT_EQ(ended_because(), "not ended");
}

}  // namespace
}  // namespace rocemu::daemon
