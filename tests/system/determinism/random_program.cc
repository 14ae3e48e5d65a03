#include "tests/system/determinism/random_program.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace rocemu::determinism {
namespace {

constexpr uint32_t kMostProcesses = 4;
constexpr uint32_t kMostThreads = 3;  // in each process
constexpr uint32_t kFewestActs = 4, kMostActs = 24;
constexpr uint32_t kMostMessages = 4;  // in an act
constexpr uint32_t kLongestUs = 2000;

constexpr std::array<std::string_view, kKinds> kNames = {
    "message",    "pipe",        "eventfd",   "semaphore", "condition", "spin",  "signal",
    "connection", "gather",      "one-sided", "mutex",     "sleep",     "timer", "yield",
    "objects",    "empty polls", "clock",     "random",    "compute",   "fork"};
constexpr std::array<std::string_view, kCqWaits> kWaitNames = {
    "poll",           "poll and yield",      "poll and sleep",
    "channel",        "channel, poll()",     "channel, select()",
    "channel, epoll", "channel with timeout"};

/// The generator SplitMix64, which gives the same numbers on all machines.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint32_t below(uint32_t limit) {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t value = state_;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return static_cast<uint32_t>((value ^ (value >> 31)) % limit);
  }
  uint32_t from_to(uint32_t least, uint32_t most) { return least + below(most - least + 1); }
  bool one_in(uint32_t count) { return below(count) == 0; }

 private:
  uint64_t state_;
};

bool is_of_two(Kind kind) {
  return kind <= Kind::kOneSided;
}

Act make_act(Random& random, uint32_t number, uint32_t threads) {
  Act act{.number = number, .kind = static_cast<Kind>(random.below(kKinds))};
  // Makes some acts more frequent than others.
  if (random.one_in(3)) act.kind = random.one_in(3) ? Kind::kGather : Kind::kMessage;
  act.from = random.below(threads);
  act.to = threads == 1 ? 0 : (act.from + 1 + random.below(threads - 1)) % threads;
  if (!is_of_two(act.kind)) act.to = act.from;
  act.third = random.below(threads);
  act.wait_of_from = static_cast<CqWait>(random.below(kCqWaits));
  act.wait_of_to = static_cast<CqWait>(random.below(kCqWaits));
  act.count = random.from_to(1, kMostMessages);
  act.time_us = random.from_to(1, kLongestUs);
  act.variant = random.below(4);
  return act;
}

}  // namespace

RandomProgram make_program(uint64_t seed, const std::set<uint32_t>& without) {
  Random random(seed);
  RandomProgram program;
  const uint32_t processes = random.from_to(1, kMostProcesses);
  for (uint32_t process = 0; process < processes; ++process) {
    const bool has_own_contexts = random.one_in(2);
    const std::string device = random.one_in(3) ? "rocemu1" : "rocemu0";
    const uint32_t threads = random.from_to(processes == 1 ? 2 : 1, kMostThreads);
    for (uint32_t i = 0; i < threads; ++i)
      program.threads.push_back({process, has_own_contexts, device});
  }
  const uint32_t acts = random.from_to(kFewestActs, kMostActs);
  const auto threads = static_cast<uint32_t>(program.threads.size());
  for (uint32_t number = 0; number < acts; ++number) {
    const Act act = make_act(random, number, threads);
    if (!without.contains(number)) program.acts.push_back(act);
  }
  return program;
}

bool RandomProgram::is_in(const Act& act, uint32_t thread) const {
  return act.from == thread || act.to == thread ||
         (act.kind == Kind::kGather && act.third == thread);
}

std::vector<Link> RandomProgram::links() const {
  std::vector<Link> links;
  const auto add = [&](uint32_t from, uint32_t to) {
    if (from == to) return;
    const bool is_there = std::ranges::any_of(
        links, [&](const Link& link) { return link.from == from && link.to == to; });
    if (!is_there) links.push_back({from, to});
  };
  for (const Act& act : acts) {
    if (act.kind == Kind::kMessage || act.kind == Kind::kGather || act.kind == Kind::kOneSided)
      add(act.from, act.to);
  }
  return links;
}

std::string RandomProgram::describe() const {
  std::string text;
  for (uint32_t i = 0; i < threads.size(); ++i) {
    const Thread& thread = threads[i];
    text += "thread " + std::to_string(i) + ": of process " + std::to_string(thread.process) +
            ", " + thread.device + (thread.has_own_context ? ", with its own context\n" : "\n");
  }
  for (const Act& act : acts) {
    text += "act " + std::to_string(act.number) + ": " +
            std::string(kNames[static_cast<size_t>(act.kind)]) + ", thread " +
            std::to_string(act.from);
    if (is_of_two(act.kind)) text += " to thread " + std::to_string(act.to);
    if (act.kind == Kind::kGather) text += " with thread " + std::to_string(act.third);
    text += "; waits: " + std::string(kWaitNames[static_cast<size_t>(act.wait_of_from)]) + " / " +
            std::string(kWaitNames[static_cast<size_t>(act.wait_of_to)]) + "; count " +
            std::to_string(act.count) + ", " + std::to_string(act.time_us) + " us, variant " +
            std::to_string(act.variant) + "\n";
  }
  return text;
}

}  // namespace rocemu::determinism
