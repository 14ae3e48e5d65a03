// Tests ibv_req_notify_cq(3), ibv_modify_cq(3) and ibv_create_cq_ex(3) with a peer that is another
// process, on another device. Requests for notification, moderation and reads of the clocks race
// with the peer's posts.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "tests/system/verbs_fixture.h"

namespace rocemu::system_test {
namespace {

using Clock = std::chrono::steady_clock;

/// Orders the peer to send some messages. The peer answers each order when all of its messages are
/// completed.
struct Order {
  uint32_t messages;
  unsigned flags;
};

template <class Value>
bool put(int socket, const Value& value) {
  return send(socket, &value, sizeof value, MSG_NOSIGNAL) == ssize_t{sizeof value};
}
template <class Value>
bool get(int socket, Value& value) {
  return recv(socket, &value, sizeof value, 0) == ssize_t{sizeof value};
}

/// An extended CQ that reports the device time and the wall clock time of each completion.
class TimedCq {
 public:
  struct Times {
    uint64_t device, wall;
    bool reads_the_same = false;  // a second time
    uint64_t lead() const { return wall - device; }
  };

  explicit TimedCq(ibv_context* context, uint32_t capacity = 64) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = capacity;
    attr.wc_flags =
        IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    cq_ = ibv_create_cq_ex(context, &attr);
    EXPECT_NE(cq_, nullptr);
  }
  ~TimedCq() { EXPECT_EQ(ibv_destroy_cq(plain()), 0); }
  TimedCq(const TimedCq&) = delete;
  TimedCq& operator=(const TimedCq&) = delete;

  ibv_cq* plain() const { return ibv_cq_ex_to_cq(cq_); }

  /// Returns the times of the next `count` completions, which arrive in batches.
  std::vector<Times> take(size_t count) {
    std::vector<Times> taken;
    ibv_poll_cq_attr attr{};
    const auto deadline = Clock::now() + kPatience;
    while (taken.size() < count && Clock::now() < deadline) {
      if (ibv_start_poll(cq_, &attr) != 0) continue;
      do {
        taken.push_back({ibv_wc_read_completion_ts(cq_), ibv_wc_read_completion_wallclock_ns(cq_)});
        taken.back().reads_the_same = ibv_wc_read_completion_ts(cq_) == taken.back().device &&
                                      ibv_wc_read_completion_wallclock_ns(cq_) == taken.back().wall;
      } while (taken.size() < count && ibv_next_poll(cq_) == 0);
      ibv_end_poll(cq_);
    }
    EXPECT_EQ(taken.size(), count);
    return taken;
  }

 private:
  ibv_cq_ex* cq_ = nullptr;
};

class OneOfTwo : public VerbsTest {
 protected:
  void connect_over(int socket, ibv_qp* qp) {
    struct Address {
      ibv_gid gid;
      uint32_t qpn;
    };
    Address mine{{}, qp->qp_num};
    Address theirs{};
    ASSERT_EQ(ibv_query_gid(context.get(), 1, 0, &mine.gid), 0);
    ASSERT_TRUE(put(socket, mine) && get(socket, theirs));
    ASSERT_NO_FATAL_FAILURE(to_init(qp));
    ASSERT_NO_FATAL_FAILURE(to_rtr(qp, theirs.qpn, &theirs.gid));
    ASSERT_NO_FATAL_FAILURE(to_rts(qp));
    ASSERT_TRUE(put(socket, mine) && get(socket, theirs));  // both are ready
  }
};

/// Sends the messages that were ordered. Its answer is the number of nanoseconds by which its wall
/// clock is ahead of device time.
class Peer : public OneOfTwo {
 public:
  void run(int socket) {
    set_up(1);
    ASSERT_FALSE(HasFatalFailure());
    TimedCq cq(context.get());
    const QpPtr qp = create_qp(cq.plain(), cq.plain());
    ASSERT_NO_FATAL_FAILURE(connect_over(socket, qp.get()));
    Order order{};
    while (get(socket, order)) {
      for (uint32_t i = 0; i < order.messages; ++i) {
        ASSERT_EQ(post_send(qp.get(), i, order.flags | IBV_SEND_SIGNALED), 0);
      }
      const std::vector<TimedCq::Times> sent = cq.take(order.messages);
      ASSERT_TRUE(put(socket, sent.back().lead()));
    }
  }

 private:
  void TestBody() override {}
};

class PeerProcess : public OneOfTwo {
 protected:
  void SetUp() override {
    int sockets[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    peer_ = fork();  // before this process opens a device
    ASSERT_GE(peer_, 0);
    if (peer_ == 0) {
      close(sockets[0]);
      Peer().run(sockets[1]);
      _exit(HasFailure() ? 1 : 0);
    }
    close(sockets[1]);
    socket_ = sockets[0];
    OneOfTwo::SetUp();
    channel = create_channel();
    cq = create_cq(64, channel.get());
    receiver = create_qp(cq.get(), cq.get());
    ASSERT_TRUE(channel && cq && receiver);
    ASSERT_NO_FATAL_FAILURE(connect_over(socket_, receiver.get()));
  }

  void TearDown() override {
    close(socket_);
    int status = 0;
    ASSERT_EQ(waitpid(peer_, &status, 0), peer_);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the peer's failure is above";
  }

  void request(bool solicited_only) {
    ASSERT_EQ(ibv_req_notify_cq(cq.get(), solicited_only ? 1 : 0), 0);
  }

  void order(uint32_t messages, unsigned flags = 0) {
    for (uint32_t i = 0; i < messages; ++i) ASSERT_EQ(post_recv(receiver.get(), i), 0);
    ASSERT_TRUE(put(socket_, Order{messages, flags}));
  }
  uint64_t await_answer() {
    uint64_t lead = 0;
    EXPECT_TRUE(get(socket_, lead));
    return lead;
  }

  /// Acknowledges all events that are present, and returns their number.
  int count_events() {
    int count = 0;
    for (; event_pending(channel.get()); ++count) take_event(channel.get());
    return count;
  }

  ChannelPtr channel;
  CqPtr cq;
  QpPtr receiver;

 private:
  pid_t peer_ = -1;
  int socket_ = -1;
};

// IBTA vol 1, 11.4.2.2, and "Only one completion event will be generated for each call": all calls
// before a completion are one request, also if some of them are for solicited completions only.
TEST_F(PeerProcess, TwoRequestsBeforeACompletionGiveOneEvent) {
  for (int round = 0; round < 400; ++round) {
    const bool first = (round & 1) != 0, second = (round & 2) != 0;
    request(first);
    request(second);
    ASSERT_NO_FATAL_FAILURE(order(1, IBV_SEND_SOLICITED));
    ASSERT_EQ(poll_for(cq.get(), 1).size(), 1u);
    ASSERT_EQ(count_events(), 1) << "in round " << round;
    await_answer();
  }
}

TEST_F(PeerProcess, RequestsOfSeveralThreadsBeforeACompletionGiveOneEvent) {
  for (int round = 0; round < 100; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([this] { request(false); });
    for (std::thread& thread : threads) thread.join();
    ASSERT_NO_FATAL_FAILURE(order(1));
    ASSERT_EQ(poll_for(cq.get(), 1).size(), 1u);
    ASSERT_EQ(count_events(), 1) << "in round " << round;
    await_answer();
  }
}

// A request for any completion remains in force if one for solicited completions follows. Both
// together are one request.
TEST_F(PeerProcess, AnUnsolicitedMessageAnswersTheWiderOfTwoRequests) {
  for (int round = 0; round < 100; ++round) {
    request(round % 2 == 0);
    request(round % 2 != 0);
    ASSERT_NO_FATAL_FAILURE(order(2));
    ASSERT_EQ(poll_for(cq.get(), 2).size(), 2u);
    ASSERT_EQ(count_events(), 1) << "in round " << round;
    await_answer();
  }
}

TEST_F(PeerProcess, ARequestAfterTheCompletionWaitsForTheNext) {
  for (int round = 0; round < 100; ++round) {
    ASSERT_NO_FATAL_FAILURE(order(1, IBV_SEND_SOLICITED));
    await_answer();
    ASSERT_EQ(poll_for(cq.get(), 1).size(), 1u);
    request(false);
    ASSERT_EQ(count_events(), 0);
    ASSERT_NO_FATAL_FAILURE(order(1));
    ASSERT_EQ(poll_for(cq.get(), 1).size(), 1u);
    ASSERT_EQ(count_events(), 1) << "in round " << round;
    await_answer();
  }
}

// The program requests notification while messages arrive: no wake-up is lost, and there are no
// more events than requests.
TEST_F(PeerProcess, NoWakeupIsLostWhileMessagesStream) {
  constexpr uint32_t kAtOnce = 30;
  for (int round = 0; round < 60; ++round) {
    ASSERT_NO_FATAL_FAILURE(order(kAtOnce, round % 2 == 0 ? IBV_SEND_SOLICITED : 0));
    uint32_t taken = 0;
    int requests = 0, events = 0;
    const auto take = [&] {
      ibv_wc wcs[kAtOnce];
      const int n = ibv_poll_cq(cq.get(), kAtOnce, wcs);
      ASSERT_GE(n, 0);
      taken += static_cast<uint32_t>(n);
    };
    while (taken < kAtOnce) {
      request(false);
      ++requests;
      take();
      if (taken == kAtOnce) break;
      ASSERT_EQ(take_event(channel.get()), cq.get());
      ++events;
      take();
    }
    await_answer();
    ASSERT_LE(events + count_events(), requests);
    // This message answers a pending request, so that none is left in the next round.
    ASSERT_NO_FATAL_FAILURE(order(1, IBV_SEND_SOLICITED));
    ASSERT_EQ(poll_for(cq.get(), 1).size(), 1u);
    await_answer();
    count_events();
  }
}

// ibv_modify_cq(3): "cq_count: number of completions per CQ event; cq_period: in micro seconds".
// With fewer completions than cq_count, the event waits for cq_period, even if the message arrived
// before the request.
TEST_F(PeerProcess, AModeratedEventDoesNotComeBeforeItsTime) {
  constexpr std::chrono::microseconds kPeriod{3000};
  ibv_modify_cq_attr attr{};
  attr.attr_mask = IBV_CQ_ATTR_MODERATE;
  attr.moderate = {.cq_count = 2, .cq_period = static_cast<uint16_t>(kPeriod.count())};
  ASSERT_EQ(ibv_modify_cq(cq.get(), &attr), 0);
  for (int round = 0; round < 300; ++round) {
    request(false);
    if (round % 2 == 0) request(true);
    const auto before = Clock::now();
    ASSERT_NO_FATAL_FAILURE(order(1));
    ASSERT_EQ(take_event(channel.get()), cq.get());
    ASSERT_GE(Clock::now() - before, kPeriod) << "in round " << round;
    ASSERT_EQ(poll_for(cq.get(), 1).size(), 1u);
    ASSERT_EQ(count_events(), 0);
    await_answer();
  }
}

// "Get the completion timestamp from the current completion and convert it from HCA clock units to
// wall clock nanoseconds". All CQs and processes use one conversion: times are in order, are the
// same when they are read again, and differ between two completions by as much as their raw
// timestamps.
TEST_F(PeerProcess, WallClockTimesNeverGoBackAndAreTheSameEverywhere) {
  TimedCq first(context.get()), second(context.get());
  const QpPtr a = create_qp(first.plain(), first.plain());
  const QpPtr b = create_qp(second.plain(), second.plain());
  ASSERT_NO_FATAL_FAILURE(connect(a.get(), b.get()));
  ASSERT_NO_FATAL_FAILURE(order(1));
  ASSERT_EQ(poll_for(cq.get(), 1).size(), 1u);
  const uint64_t lead = await_answer();
  uint64_t latest = 0;
  for (int round = 0; round < 100; ++round) {
    constexpr uint32_t kAtOnce = 20;
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      ASSERT_EQ(post_recv(b.get(), i), 0);
      ASSERT_EQ(post_send(a.get(), i), 0);
    }
    std::vector<TimedCq::Times> all;
    for (TimedCq* timed : {&first, &second}) {
      std::vector<TimedCq::Times> times = timed->take(kAtOnce);
      ASSERT_TRUE(std::ranges::is_sorted(times, {}, &TimedCq::Times::device));
      ASSERT_TRUE(std::ranges::is_sorted(times, {}, &TimedCq::Times::wall)) << "in round " << round;
      ASSERT_GE(times.front().wall, latest);
      all.insert(all.end(), times.begin(), times.end());
    }
    for (const TimedCq::Times& times : all) {
      ASSERT_TRUE(times.reads_the_same);
      ASSERT_EQ(times.lead(), lead);
      latest = std::max(latest, times.wall);
    }
  }
}

// ibv_query_rt_values_ex(3): the "HW raw clock" and completion timestamps are one clock, whichever
// of the device's threads makes the completion, and however long it had slept.
TEST_F(PeerProcess, ACompletionsTimestampIsBetweenTheClockBeforeAndAfterIt) {
  const auto raw_clock = [&] {
    ibv_values_ex values{};
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    EXPECT_EQ(ibv_query_rt_values_ex(context.get(), &values), 0);
    return static_cast<uint64_t>(values.raw_clock.tv_sec) * 1'000'000'000 +
           static_cast<uint64_t>(values.raw_clock.tv_nsec);
  };
  receiver.reset();
  TimedCq timed(context.get());
  TimedCq other(context.get());
  const QpPtr a = create_qp(other.plain(), other.plain());
  const QpPtr b = create_qp(timed.plain(), timed.plain());
  ASSERT_NO_FATAL_FAILURE(connect(a.get(), b.get()));
  for (int round = 0; round < 50; ++round) {
    ASSERT_EQ(post_recv(b.get(), 1), 0);
    settle();
    const uint64_t before = raw_clock();
    ASSERT_EQ(post_send(a.get(), 1), 0);
    const uint64_t received = timed.take(1).front().device;
    const uint64_t sent = other.take(1).front().device;
    const uint64_t after = raw_clock();
    ASSERT_LE(before, received);
    ASSERT_LE(received, after);
    ASSERT_LE(before, sent);
    ASSERT_LE(sent, after);
  }
}

}  // namespace
}  // namespace rocemu::system_test
