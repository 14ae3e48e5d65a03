// Tests what a session adds to the objects that the engine creates: shared memory and channels.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "tests/daemon/client/client_session_fixture.h"

namespace rocemu::daemon {
namespace {

/// While this object exists, an allocation of 128 GiB fails.
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

TEST_F(ClientSessionTest, AClientCanRequestASegmentThatItCannotShrink) {
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

  // ibv_destroy_srq(3) waits for the acknowledgement of events that were read, and not for unread
  // events.
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

TEST_F(ClientSessionTest, QueuesOfAnotherClientAreUnknown) {
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

TEST_F(ResizeCqTest, GivesANewMemoryWithTheUnreadCompletions) {
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

// The program still maps the queues. If the session reset a producer index to 0, a program that
// polls would have to take 2^32 completions before it detects that the device is gone.
TEST_F(ResizeCqTest, TheQueuesOfAProgramStayAsTheyAreWhenTheSessionEnds) {
  const Received answer = ask(resize(100));
  const auto& place = answer.reply.body.create_cq.memory;
  ASSERT_EQ(place.segment, 0u);
  session.reset();
  abi::Cqe cqe;
  ASSERT_EQ(pread(segment.get(), &cqe, sizeof cqe,
                  static_cast<off_t>(place.offset + sizeof(abi::CqRing))),
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
  EXPECT_THAT(engine.refusals, ElementsAre(std::pair(Op::kResizeCq, ENOMEM)));
  EXPECT_EQ(cq().capacity(), 16u);
}

TEST_F(ClientSessionTest, ACqNeedsAChannelOfItsOwnClient) {
  hello();
  abi::Request asked = request(Op::kCreateCq);
  asked.body.create_cq.channel_inode = 12345;
  EXPECT_EQ(ask(asked).reply.error, EINVAL);
  EXPECT_THAT(engine.commands, ElementsAre(Op::kHello));
  EXPECT_THAT(engine.refusals, ElementsAre(std::pair(Op::kCreateCq, EINVAL)));
}

// The engine gets each call that the provider refused, so that recordings show the errno that the
// program got.
TEST_F(ClientSessionTest, TheEngineIsToldOfWhatTheClientRefuses) {
  hello();
  abi::Request refused = request(Op::kDeallocPd);
  refused.refusal = EBUSY;
  refused.body.object.handle = 3;
  EXPECT_EQ(ask(refused).reply.error, EBUSY);
  refused = request(Op::kCreateCq);  // nothing is made
  refused.refusal = EINVAL;
  EXPECT_EQ(ask(refused).reply.error, EINVAL);
  EXPECT_THAT(engine.commands, ElementsAre(Op::kHello));
  EXPECT_THAT(engine.refusals,
              ElementsAre(std::pair(Op::kDeallocPd, EBUSY), std::pair(Op::kCreateCq, EINVAL)));
}

TEST_F(ClientSessionTest, TheEngineIsToldOnceOfWhatItRefusesItself) {
  hello();
  engine.answer = [](const abi::Request&) {
    abi::Reply reply{};
    reply.error = ENOMEM;
    return reply;
  };
  EXPECT_EQ(ask(request(Op::kAllocPd)).reply.error, ENOMEM);
  EXPECT_TRUE(engine.refusals.empty());
}

TEST_F(ClientSessionTest, TheEngineIsNotToldOfRefusalsOfUnknownOperations) {
  hello();
  abi::Request refused = request(Op::kOpenSegment);
  refused.refusal = EINVAL;
  EXPECT_EQ(ask(refused).reply.error, EOPNOTSUPP);
  EXPECT_TRUE(engine.refusals.empty());
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
