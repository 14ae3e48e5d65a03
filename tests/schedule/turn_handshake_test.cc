// Tests how the daemon and a thread pass a turn by two words that both write. The tests run every
// interleaving of their accesses: no turn is lost, and no turn is taken twice.
#include "emulator/abi/turn_handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/schedule/interleavings.h"

namespace rocemu::test {
namespace {

using abi::ThreadSlot;
using Memory = Interleavings::Memory;
using Program = Interleavings::Program;
using testing::HasSubstr;

/// The two words of a ThreadSlot.
struct Slot {
  struct Word {
    Memory& memory;
    size_t number;
    uint32_t load() const { return memory.load(number); }
    void store(uint32_t value) { memory.store(number, value); }
    bool compare_exchange_strong(uint32_t& expected, uint32_t value) {
      return memory.compare_exchange(number, expected, value);
    }
  };
  explicit Slot(Memory& memory) : state{memory, 0}, turn{memory, 1} {}
  Word state, turn;
};

struct AsBuilt {
  static void release(Slot& slot) { abi::release_turn(slot); }
};
/// An earlier order of rocemu's accesses: the second store overwrites a turn that the daemon gave
/// after the first store.
struct StoresTheTurn {
  static void release(Slot& slot) {
    slot.state.store(ThreadSlot::kWaits);
    slot.turn.store(ThreadSlot::kNone);
  }
};
struct StoresTheTurnFirst {
  static void release(Slot& slot) {
    slot.turn.store(ThreadSlot::kNone);
    slot.state.store(ThreadSlot::kWaits);
  }
};

template <class Order>
void wait_for_turn(Memory& memory, Slot& slot) {
  Order::release(slot);
  memory.await([&] { return abi::take_turn(slot); });
}

/// Returns a thread that starts in a slot that its creator has taken, has `turns` turns, and ends.
template <class Order>
Program thread_with_turns(int turns) {
  return [turns](Memory& memory) {
    Slot slot(memory);
    for (int i = 0; i < turns; ++i) wait_for_turn<Order>(memory, slot);
    abi::end_turns(slot);
  };
}

/// Returns a daemon that gives a turn `turns` times, to any thread that waits.
Program daemon_with_turns(int turns) {
  return [turns](Memory& memory) {
    Slot slot(memory);
    for (int i = 0; i < turns; ++i) {
      memory.await([&] { return slot.state.load() == ThreadSlot::kWaits; });
      abi::give_turn(slot);
      memory.await([&] { return abi::is_turn_back(slot); });
      const uint32_t state = slot.state.load();
      memory.check(state == ThreadSlot::kWaits || state == ThreadSlot::kGone,
                   "the turn is back, and the thread does not wait");
      if (state == ThreadSlot::kGone) abi::free_ended(slot);
    }
  };
}

std::string first_failure(std::vector<Program> programs) {
  return Interleavings({ThreadSlot::kStarting, ThreadSlot::kNone}, std::move(programs))
      .first_failure();
}

TEST(TurnHandshake, LosesNoTurnOfAThreadThatStarts) {
  for (const int turns : {1, 2, 3})
    EXPECT_EQ(first_failure({daemon_with_turns(turns), thread_with_turns<AsBuilt>(turns)}), "")
        << turns;
}

TEST(TurnHandshake, AStoreInPlaceOfTheExchangeLosesTheFirstTurn) {
  // The thread overwrites its first turn and never notices it, but the daemon takes it for used.
  EXPECT_THAT(first_failure({daemon_with_turns(1), thread_with_turns<StoresTheTurn>(1)}),
              HasSubstr("does not wait"));
}

TEST(TurnHandshake, TheTurnBeforeTheStateLeavesTheDaemonWithAThreadThatSeemsToRun) {
  EXPECT_THAT(first_failure({daemon_with_turns(2), thread_with_turns<StoresTheTurnFirst>(2)}),
              HasSubstr("does not wait"));
}

TEST(TurnHandshake, ASlotThatWasFreedIsAnothersAtOnce) {
  const Program next = [](Memory& memory) {
    Slot slot(memory);
    memory.await([&] { return abi::take_slot(slot); });
    wait_for_turn<AsBuilt>(memory, slot);
    wait_for_turn<AsBuilt>(memory, slot);
    abi::end_turns(slot);
  };
  EXPECT_EQ(first_failure({daemon_with_turns(3), thread_with_turns<AsBuilt>(1), next}), "");
}

struct LooksAndStores {
  static bool take(Slot& slot) {
    if (slot.state.load() != ThreadSlot::kFree) return false;
    slot.state.store(ThreadSlot::kStarting);
    return true;
  }
};
struct Exchanges {
  static bool take(Slot& slot) { return abi::take_slot(slot); }
};

/// Returns a thread that takes the slot if it is free, writes its number to the other word, and
/// waits until the word has this number.
template <class Way>
Program taker(uint32_t number) {
  return [number](Memory& memory) {
    Slot slot(memory);
    if (!Way::take(slot)) return;
    slot.turn.store(number);
    memory.await([&] { return slot.turn.load() == number; });
  };
}

TEST(TurnHandshake, AFreeSlotIsTakenByOneOnly) {
  const auto failure = [](Program one, Program other) {
    return Interleavings({ThreadSlot::kFree, 0}, {std::move(one), std::move(other)})
        .first_failure();
  };
  EXPECT_EQ(failure(taker<Exchanges>(1), taker<Exchanges>(2)), "");
  EXPECT_THAT(failure(taker<Exchanges>(1), taker<LooksAndStores>(2)), HasSubstr("sleeps for ever"));
}

/// Returns a daemon that revokes a turn once, and gives it again when the thread waits.
Program daemon_that_revokes() {
  return [](Memory& memory) {
    Slot slot(memory);
    memory.await([&] { return slot.state.load() == ThreadSlot::kWaits; });
    abi::give_turn(slot);
    abi::revoke_turn(slot);
    for (;;) {
      uint32_t state = 0;
      memory.await([&] {
        state = slot.state.load();
        return state == ThreadSlot::kWaits || state == ThreadSlot::kGone;
      });
      if (state == ThreadSlot::kGone) return abi::free_ended(slot);
      abi::give_turn(slot);
      memory.await([&] { return abi::is_turn_back(slot); });
    }
  };
}

template <class Order>
Program thread_that_loses_its_turn() {
  return [](Memory& memory) {
    Slot slot(memory);
    wait_for_turn<Order>(memory, slot);
    if (slot.turn.load() == ThreadSlot::kNone) wait_for_turn<Order>(memory, slot);
    wait_for_turn<Order>(memory, slot);
    abi::end_turns(slot);
  };
}

TEST(TurnHandshake, AThreadThatLostItsTurnGetsAnother) {
  EXPECT_EQ(first_failure({daemon_that_revokes(), thread_that_loses_its_turn<AsBuilt>()}), "");
  EXPECT_THAT(first_failure({daemon_that_revokes(), thread_that_loses_its_turn<StoresTheTurn>()}),
              HasSubstr("sleeps for ever"));
}

/// Word 2 is TurnTable::is_daemon_awake, and word 3 the eventfd.
struct Table {
  explicit Table(Memory& memory) : is_daemon_awake{memory, 2} {}
  Slot::Word is_daemon_awake;
};
constexpr size_t kNotified = 3;

/// Gives a turn, and sleeps if the turn is not returned at once. With `rechecks`, the daemon checks
/// once more after it announced its sleep and before it sleeps.
Program daemon_that_may_sleep(bool rechecks) {
  return [rechecks](Memory& memory) {
    Slot slot(memory);
    Table table(memory);
    memory.await([&] { return slot.state.load() == ThreadSlot::kWaits; });
    table.is_daemon_awake.store(1);
    abi::give_turn(slot);
    const bool is_back = abi::is_turn_back(slot);
    table.is_daemon_awake.store(0);
    if (is_back || (rechecks && abi::is_turn_back(slot))) return;
    memory.await([&] { return memory.load(kNotified) != 0; });
    memory.check(abi::is_turn_back(slot), "notified, and the turn is not back");
  };
}

Program thread_that_notifies() {
  return [](Memory& memory) {
    Slot slot(memory);
    wait_for_turn<AsBuilt>(memory, slot);
    abi::release_turn(slot);
    if (abi::must_notify(Table(memory))) memory.store(kNotified, 1);
  };
}

TEST(TurnHandshake, ADaemonThatFallsAsleepMissesNoTurn) {
  const auto failure = [](bool rechecks) {
    return Interleavings({ThreadSlot::kStarting, ThreadSlot::kNone, 0, 0},
                         {daemon_that_may_sleep(rechecks), thread_that_notifies()})
        .first_failure();
  };
  EXPECT_EQ(failure(true), "");
  EXPECT_THAT(failure(false), HasSubstr("sleeps for ever"));
}

}  // namespace
}  // namespace rocemu::test
