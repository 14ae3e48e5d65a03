// Tests the engine's containers by themselves: Table, OwnedTable, WorkRing, TimerQueue, FramePool,
// MemoryTable.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <deque>
#include <initializer_list>
#include <map>
#include <utility>
#include <vector>

#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/owned_table.h"
#include "emulator/engine/base/random.h"
#include "emulator/engine/base/table.h"
#include "emulator/engine/base/timers.h"
#include "emulator/engine/base/work_ring.h"

namespace rocemu::engine {
namespace {

// ---- Table ------------------------------------------------------------------------------------

struct Thing {
  Thing(PdId i, int v) : id(i), value(v) {}
  PdId id;
  int value;
};
using Things = Table<PdId, Thing>;

TEST(Table, NumbersFromTheFirstOn) {
  Things table(17, 100);
  EXPECT_EQ(table.create(1)->id.value, 17u);
  EXPECT_EQ(table.create(2)->id.value, 18u);
  EXPECT_EQ(table.find(PdId{18})->value, 2);
  EXPECT_EQ(table.size(), 2u);
}

TEST(Table, FindsNothingOutside) {
  Things table(17, 100);
  table.create(1);
  for (const uint32_t id : {0u, 16u, 18u, 0xffffffffu}) EXPECT_EQ(table.find(PdId{id}), nullptr);
}

TEST(Table, HoldsItsLimitAndNoMore) {
  Things table(1, 3);
  for (int i = 0; i < 3; ++i) EXPECT_NE(table.create(i), nullptr);
  EXPECT_EQ(table.create(3), nullptr);
  table.destroy(PdId{2});
  EXPECT_EQ(table.create(4)->id.value, 2u);
  EXPECT_EQ(table.create(5), nullptr);
}

TEST(Table, ReusesNumbersAsLateAsPossible) {
  Things table(1, 100000);
  const PdId first = table.create(0)->id;
  table.destroy(first);
  std::vector<uint32_t> seen;
  for (int i = 0; i < 3000; ++i) {
    const PdId id = table.create(i)->id;
    seen.push_back(id.value);
    table.destroy(id);
  }
  const auto again = std::find(seen.begin(), seen.end(), first.value);
  EXPECT_GE(again - seen.begin(), 1000);
  EXPECT_EQ(table.size(), 0u);
}

TEST(Table, WalksInOrderAndLetsTheVisitorDestroyWhatItSees) {
  Things table(1, 100);
  for (int i = 0; i < 10; ++i) table.create(i);
  std::vector<int> seen;
  table.for_each([&](Thing& thing) {
    seen.push_back(thing.value);
    if (thing.value % 2 == 0) table.destroy(thing.id);
  });
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  seen.clear();
  table.for_each([&](Thing& thing) { seen.push_back(thing.value); });
  EXPECT_EQ(seen, (std::vector<int>{1, 3, 5, 7, 9}));
}

TEST(Table, FindsFewEntriesAfterManyRemovals) {
  Things table(1, 100000);
  std::vector<PdId> made;
  for (int i = 0; i < 5000; ++i) made.push_back(table.create(i)->id);
  for (size_t i = 0; i < made.size(); ++i) {
    if (i != 1000 && i != 4999) table.destroy(made[i]);
  }
  for (size_t i = 0; i < made.size(); ++i) {
    const bool is_left = i == 1000 || i == 4999;
    ASSERT_EQ(table.find(made[i]) != nullptr, is_left) << i;
  }
  std::vector<int> seen;
  table.for_each([&](const Thing& thing) { seen.push_back(thing.value); });
  EXPECT_EQ(seen, (std::vector<int>{1000, 4999}));
  EXPECT_EQ(table.create(7)->id, made[0]) << "the numbers go on as before";
  EXPECT_EQ(table.find(made[0])->value, 7);
}

TEST(FreeNumbers, ComeOnceEachAndNotBeforeTheyHaveRested) {
  constexpr uint32_t kNumbers = 5000;
  Random random(3);
  FreeNumbers numbers;
  std::vector<uint32_t> used;
  // for each number that is free, the value of `freed` when it was pushed
  std::vector<int> freed_at(kNumbers, 0);
  int freed = 0;
  for (uint32_t i = 0; i < kNumbers; ++i) used.push_back(i);
  for (int i = 0; i < 200'000; ++i) {
    const bool frees = random.next() % 1000 < (i / 20'000 % 2 == 0 ? 700 : 300);  // ebb and flow
    if (frees && !used.empty()) {
      std::swap(used[random.next() % used.size()], used.back());
      freed_at[used.back()] = ++freed;
      numbers.push(used.back());
      used.pop_back();
    } else if (numbers.has_rested()) {
      const uint32_t number = numbers.front();
      ASSERT_GT(freed_at[number], 0) << "it is in use";
      ASSERT_GE(freed - freed_at[number], 1024);
      freed_at[number] = 0;
      numbers.pop();
      used.push_back(number);
    }
    ASSERT_EQ(numbers.empty(), used.size() == kNumbers);
  }
  // When only numbers remain whose rest is not over, they are popped as well, in the order in which
  // they were pushed.
  while (numbers.has_rested()) numbers.pop();
  int latest = 0;
  for (; !numbers.empty(); numbers.pop()) {
    EXPECT_LT(std::exchange(latest, freed_at[numbers.front()]), freed_at[numbers.front()]);
  }
}

TEST(FreeNumbers, ThatHaveRestedComeRoundAndRound) {
  FreeNumbers numbers;
  const auto rest = [&](std::initializer_list<uint32_t> list) {
    for (const uint32_t number : list) numbers.push(number);
    for (uint32_t i = 0; i < 1024; ++i) numbers.push(1'000'000 + i);
  };
  const auto take = [&] {
    const uint32_t number = numbers.front();
    numbers.pop();
    return number;
  };
  rest({7, 5, 6, 3, 9});
  EXPECT_EQ(take(), 3u);
  EXPECT_EQ(take(), 5u);
  EXPECT_EQ(take(), 6u);
  rest({4, 2, 8});
  EXPECT_EQ(take(), 7u) << "the lower ones have their turn in the next round";
  EXPECT_EQ(take(), 8u);
  EXPECT_EQ(take(), 9u);
}

// While one client creates and destroys very many objects, another one often appears and ends.
TEST(Table, FreesTheMemoryOfRemovedEntries) {
  const size_t before = mallinfo2().uordblks;
  Things table(1, 1 << 20);
  const auto visit = [&] { table.destroy(table.create(0)->id); };
  std::deque<PdId> made;
  for (int i = 0; i < 200'000; ++i) {
    made.push_back(table.create(i)->id);
    if (i % 2 == 0) visit();
  }
  for (; !made.empty(); made.pop_front()) {
    table.destroy(made.front());
    if (made.size() % 3 == 0) visit();
  }
  made.shrink_to_fit();
  EXPECT_LT(mallinfo2().uordblks, before + (128 << 10));
}

// ---- OwnedTable -------------------------------------------------------------------------------

struct OwnedThing {
  OwnedThing(PdId i, ClientId c) : id(i), client(c) {}
  PdId id;
  ClientId client;
  Links<OwnedThing> of_client;
};
using OwnedThings = OwnedTable<PdId, OwnedThing>;

std::vector<uint32_t> things_of(const OwnedThings& table, ClientId client) {
  std::vector<uint32_t> ids;
  table.for_each_of(client, [&](const OwnedThing& thing) { ids.push_back(thing.id.value); });
  EXPECT_EQ(ids.size(), table.count_of(client));
  return ids;
}

TEST(OwnedTable, ListsTheObjectsOfAClientInTheOrderOfAcquisition) {
  OwnedThings table(1, 1000, 100);
  for (int i = 0; i < 3; ++i) {
    table.create(ClientId{1});
    table.create(ClientId{2});
  }
  EXPECT_EQ(things_of(table, ClientId{1}), (std::vector<uint32_t>{1, 3, 5}));
  table.destroy(PdId{3});
  table.give(*table.find(PdId{1}), ClientId{2});
  EXPECT_EQ(things_of(table, ClientId{1}), (std::vector<uint32_t>{5}));
  EXPECT_EQ(things_of(table, ClientId{2}), (std::vector<uint32_t>{2, 4, 6, 1}));
  EXPECT_EQ(table.find(PdId{1})->client, ClientId{2});
  table.destroy(PdId{5});
  EXPECT_EQ(table.first_of(ClientId{1}), nullptr);
  EXPECT_EQ(table.first_of(ClientId{3}), nullptr);
}

TEST(OwnedTable, LimitsEachClientWithoutEffectOnOthers) {
  OwnedThings table(1, 1000, 100);
  for (uint32_t client = 1; client <= 8; ++client) {
    for (int i = 0; i < 100; ++i) ASSERT_NE(table.create(ClientId{client}), nullptr);
    EXPECT_EQ(table.create(ClientId{client}), nullptr);
  }
}

TEST(OwnedTable, LeavesTheLastNumbersToThoseWithFew) {
  constexpr uint32_t kNumbers = 80'000;
  OwnedThings table(1, kNumbers, 50'000);
  const auto take_all = [&](ClientId client) {
    while (table.create(client) != nullptr) continue;
    return table.count_of(client);
  };
  EXPECT_EQ(take_all(ClientId{1}), 50'000u);
  EXPECT_EQ(take_all(ClientId{2}), 20'000u) << "all but the reserve";
  for (uint32_t client = 3; client < 12; ++client) EXPECT_EQ(take_all(ClientId{client}), 1024u);
}

TEST(OwnedTable, TellsHowManyAClientCanHaveIfNumbersAreFewer) {
  EXPECT_EQ(OwnedThings(1, 80, 1000).most_of_a_client(), 70u);
  EXPECT_EQ(OwnedThings(1, 80'000, 1000).most_of_a_client(), 1000u);
}

// ---- WorkRing ---------------------------------------------------------------------------------

struct State {
  int mark = 0;
};

std::array<std::byte, 16> wqe(uint64_t value) {
  std::array<std::byte, 16> bytes{};
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

TEST(WorkRing, GivesBackWhatWasPushedInOrder) {
  WorkRing<State> ring;
  ring.configure(100, 16);
  uint64_t pushed = 0, popped = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 1 + round % 7 && !ring.full(); ++i) {
      ring.push(wqe(pushed));
      EXPECT_EQ(ring.state(ring.tail() - 1).mark, 0);
      ring.state(ring.tail() - 1).mark = static_cast<int>(pushed++);
    }
    for (int i = 0; i < round % 5 && !ring.empty(); ++i) {
      EXPECT_EQ(ring.header<uint64_t>(ring.head()), popped);
      EXPECT_EQ(ring.state(ring.head()).mark, static_cast<int>(popped++));
      ring.pop();
    }
    EXPECT_EQ(ring.size(), pushed - popped);
    for (uint32_t i = ring.head(); i != ring.tail(); ++i) {
      EXPECT_EQ(ring.header<uint64_t>(i), i);
    }
  }
}

TEST(WorkRing, IsFullAtItsLimitWhichNeedNotBeAPowerOfTwo) {
  WorkRing<State> ring;
  ring.configure(5, 16);
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(ring.full());
    ring.push(wqe(1));
  }
  EXPECT_TRUE(ring.full());
  ring.pop();
  EXPECT_FALSE(ring.full());
}

TEST(WorkRing, OfLimitZeroIsFullFromTheStart) {
  WorkRing<State> ring;
  ring.configure(0, 16);
  EXPECT_TRUE(ring.full());
  EXPECT_TRUE(ring.empty());
}

TEST(WorkRing, CountsOnOverClearAndSkip) {
  WorkRing<State> ring;
  ring.configure(4, 16);
  ring.skip();
  EXPECT_EQ(ring.head(), 1u);
  ring.push(wqe(1));
  ring.push(wqe(2));
  ring.clear();
  EXPECT_TRUE(ring.empty());
  EXPECT_EQ(ring.tail(), 3u);
  ring.skip();
  ring.push(wqe(4));
  EXPECT_EQ(ring.header<uint64_t>(4), 4u);
}

TEST(WorkRing, ShowsWhatFollowsTheHeader) {
  WorkRing<State> ring;
  ring.configure(4, 16);
  ring.push(wqe(0x1122334455667788));
  EXPECT_EQ(ring.rest(0, 8).size(), 8u);
  EXPECT_EQ(ring.rest(0, 2)[0], std::byte{0x66});
}

// ---- TimerQueue -------------------------------------------------------------------------------

constexpr Instant at(int64_t ns) {
  return Instant(Duration(ns));
}

struct Timers {
  TimerQueue queue;
  std::map<QpNumber, TimerSet> sets;

  TimerSet* of(QpNumber qp) {
    const auto found = sets.find(qp);
    return found != sets.end() ? &found->second : nullptr;
  }
  std::optional<TimerQueue::Entry> next() {
    return queue.next([this](QpNumber qp) { return of(qp); });
  }
  void set(uint32_t qp, TimerKind kind, int64_t ns) {
    queue.set(QpNumber{qp}, sets[QpNumber{qp}], kind, at(ns));
  }
  std::optional<TimerQueue::Entry> take() {
    const auto entry = next();
    if (entry) queue.expire(*entry, sets[entry->qp]);
    return entry;
  }
};

using Entry = TimerQueue::Entry;

TEST(TimerQueue, GivesTheEarliestFirst) {
  Timers timers;
  timers.set(1, TimerKind::kAck, 30);
  timers.set(2, TimerKind::kAck, 10);
  timers.set(1, TimerKind::kRnr, 20);
  EXPECT_EQ(timers.take(), (Entry{at(10), QpNumber{2}, TimerKind::kAck}));
  EXPECT_EQ(timers.take(), (Entry{at(20), QpNumber{1}, TimerKind::kRnr}));
  EXPECT_EQ(timers.take(), (Entry{at(30), QpNumber{1}, TimerKind::kAck}));
  EXPECT_EQ(timers.take(), std::nullopt);
}

TEST(TimerQueue, OrdersEqualDeadlinesByQp) {
  Timers timers;
  for (const uint32_t qp : {5u, 1u, 4u, 2u, 3u}) timers.set(qp, TimerKind::kAck, 7);
  for (uint32_t qp = 1; qp <= 5; ++qp) EXPECT_EQ(timers.take()->qp.value, qp);
}

TEST(TimerQueue, ForgetsACanceledTimer) {
  Timers timers;
  timers.set(1, TimerKind::kAck, 10);
  TimerQueue::cancel(timers.sets[QpNumber{1}], TimerKind::kAck);
  EXPECT_EQ(timers.next(), std::nullopt);
  timers.set(1, TimerKind::kAck, 15);
  EXPECT_EQ(timers.next()->at, at(15));
}

TEST(TimerQueue, FollowsATimerThatIsSetLaterOrEarlier) {
  Timers timers;
  timers.set(1, TimerKind::kAck, 10);
  timers.set(1, TimerKind::kAck, 20);
  EXPECT_EQ(timers.next()->at, at(20));
  timers.set(1, TimerKind::kAck, 5);
  EXPECT_EQ(timers.take()->at, at(5));
  EXPECT_EQ(timers.next(), std::nullopt);
}

TEST(TimerQueue, ForgetsTheTimersOfAQpThatIsGone) {
  Timers timers;
  timers.set(1, TimerKind::kAck, 10);
  timers.set(2, TimerKind::kAck, 20);
  timers.sets.erase(QpNumber{1});
  EXPECT_EQ(timers.next()->qp.value, 2u);
  timers.sets[QpNumber{1}] = {};  // another QP with the same number, without timers
  EXPECT_EQ(timers.next()->qp.value, 2u);
}

TEST(TimerQueue, AgreesWithAListThatIsSearched) {
  Timers timers;
  std::map<std::pair<uint32_t, TimerKind>, int64_t> model;
  Random random(7);
  for (int i = 0; i < 20000; ++i) {
    const auto qp = static_cast<uint32_t>(random.next() % 8 + 1);
    const auto kind = static_cast<TimerKind>(random.next() % 2);
    switch (random.next() % 4) {
      case 0:
      case 1: {
        const auto when = static_cast<int64_t>(random.next() % 100);
        timers.set(qp, kind, when);
        model[{qp, kind}] = when;
        break;
      }
      case 2:
        TimerQueue::cancel(timers.sets[QpNumber{qp}], kind);
        model.erase({qp, kind});
        break;
      case 3: {
        const auto first = std::min_element(model.begin(), model.end(), [](auto& a, auto& b) {
          return std::pair(a.second, a.first) < std::pair(b.second, b.first);
        });
        const auto got = timers.take();
        ASSERT_EQ(got.has_value(), first != model.end());
        if (!got) break;
        ASSERT_EQ(*got,
                  (Entry{at(first->second), QpNumber{first->first.first}, first->first.second}));
        model.erase(first);
        break;
      }
    }
  }
}

// ---- FramePool --------------------------------------------------------------------------------

TEST(FramePool, GivesAFrameBackWhenTheLastReferenceGoes) {
  FramePool pool;
  const uint8_t* first;
  {
    Frame frame = pool.allocate();
    first = frame.storage().data();
    Frame copy = frame;
    frame = Frame();
    EXPECT_EQ(copy.storage().data(), first);
    Frame moved = std::move(copy);
    EXPECT_EQ(moved.storage().data(), first);
    const Frame other = pool.allocate();
    EXPECT_NE(const_cast<Frame&>(other).storage().data(), first);
  }
  const Frame a = pool.allocate(), b = pool.allocate();
  EXPECT_TRUE(const_cast<Frame&>(a).storage().data() == first ||
              const_cast<Frame&>(b).storage().data() == first);
  EXPECT_EQ(a.bytes().size(), 0u);
}

TEST(FramePool, AFrameThatContainsItsPacketHasTheSameBytesOnRequest) {
  FramePool pool;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{6}, size_t{4096}}) {
    wire::Packet packet;
    packet.bth.opcode = wire::Opcode::kRcSendOnly;
    packet.bth.psn = wire::Psn{77};
    packet.bth.dest_qpn = 0x1234;
    std::vector<uint8_t> expected(Frame::kCapacity);
    expected.resize(wire::emit_headers(packet, size, expected));
    Frame frame = pool.allocate();
    // content of an earlier frame
    std::fill(frame.storage().begin(), frame.storage().end(), uint8_t{0xaa});
    frame.set_packet(packet, size);
    const auto payload = std::span<uint8_t>(frame.storage()).subspan(wire::payload_offset(packet));
    for (size_t i = 0; i < size; ++i) {
      expected[wire::payload_offset(packet) + i] = payload[i] = static_cast<uint8_t>(i);
    }
    EXPECT_EQ(frame.size(), expected.size());
    EXPECT_EQ(frame.packet()->payload.size(), size);
    const Frame copy = frame;
    for (const Frame& one : {copy, frame}) {
      const auto bytes = one.bytes();
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end() - wire::kIcrcSize, expected.begin(),
                             expected.end() - wire::kIcrcSize))
          << size;
    }
  }
}

}  // namespace
}  // namespace rocemu::engine
