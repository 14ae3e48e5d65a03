// Runs programs that share atomic words, through every interleaving of their accesses. A program is
// a function that always does the same if it reads the same values. So, to make one more access,
// the function is run again from its start, with the values that it read before, and stopped after
// the access.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rocemu::test {

class Interleavings {
 public:
  using Words = std::vector<uint32_t>;

  /// The program's view of the shared words while it runs.
  class Memory {
   public:
    uint32_t load(size_t word) {
      return access([word](Words& words) { return words[word]; });
    }
    void store(size_t word, uint32_t value) {
      access([=](Words& words) { return std::exchange(words[word], value); });
    }
    bool compare_exchange(size_t word, uint32_t& expected, uint32_t value) {
      const uint32_t wanted = expected;
      const uint32_t found = access([=](Words& words) {
        const uint32_t before = words[word];
        if (before == wanted) words[word] = value;
        return before;
      });
      expected = found;
      return found == wanted;
    }
    /// Sleeps until `ready` returns true. `ready` is called again each time that a word has
    /// changed.
    template <class Ready>
    void await(Ready ready) {
      const size_t begin = position_;
      if (begin == mind_.log.size()) mind_.saw = words_;
      if (ready()) return;
      mind_.log.resize(begin);
      throw Sleeps{};
    }
    void check(bool holds, const char* what) {
      if (!holds) throw Wrong{what};
    }

   private:
    friend class Interleavings;
    struct Stop {};
    struct Sleeps {};
    struct Wrong {
      std::string what;
    };

    struct Mind {
      Words log;  // the results of the program's accesses so far
      bool has_ended = false, sleeps = false;
      Words saw;  // the words when `ready` was called: the program sleeps until they change
      auto operator<=>(const Mind&) const = default;
    };

    Memory(Words& words, Mind& mind) : words_(words), mind_(mind) {}

    template <class Access>
    uint32_t access(Access perform) {
      if (position_ == mind_.log.size()) {
        if (has_stepped_) throw Stop{};
        has_stepped_ = true;
        mind_.log.push_back(perform(words_));
      }
      return mind_.log[position_++];
    }

    Words& words_;
    Mind& mind_;
    size_t position_ = 0;
    bool has_stepped_ = false;
  };
  using Program = std::function<void(Memory&)>;

  Interleavings(Words initial, std::vector<Program> programs)
      : programs_(std::move(programs)), initial_(std::move(initial)) {}

  /// Returns the first failure, with the order of accesses that leads to it, or "" if there is
  /// none. A failure is a check that does not hold, or programs that sleep for ever.
  std::string first_failure() {
    World world{.words = initial_, .minds = std::vector<Mind>(programs_.size())};
    return search(world, "");
  }
  /// Returns the number of different states that were reached.
  size_t states() const { return seen_.size(); }

 private:
  using Mind = Memory::Mind;
  struct World {
    Words words;
    std::vector<Mind> minds;
    auto operator<=>(const World&) const = default;
  };

  std::string search(const World& world, const std::string& order) {
    if (!seen_.insert(world).second) return "";
    bool any_runs = false, all_ended = true;
    for (size_t i = 0; i < programs_.size(); ++i) {
      const Mind& mind = world.minds[i];
      all_ended &= mind.has_ended;
      if (mind.has_ended || (mind.sleeps && mind.saw == world.words)) continue;
      any_runs = true;
      World next = world;
      const std::string longer = order + static_cast<char>('A' + i);
      const std::string failure = step(next, i);
      if (!failure.empty()) return failure + " after " + longer;
      const std::string later = search(next, longer);
      if (!later.empty()) return later;
    }
    return any_runs || all_ended ? "" : "a program sleeps for ever after " + order;
  }

  std::string step(World& world, size_t number) {
    Mind& mind = world.minds[number];
    mind.sleeps = false;
    Memory memory(world.words, mind);
    try {
      programs_[number](memory);
      mind.has_ended = true;
    } catch (const Memory::Stop&) {
    } catch (const Memory::Sleeps&) {
      mind.sleeps = true;
    } catch (const Memory::Wrong& wrong) {
      return wrong.what;
    }
    return "";
  }

  std::vector<Program> programs_;
  Words initial_;
  std::set<World> seen_;
};

}  // namespace rocemu::test
