#include "tests/waiting/parties.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace rocemu::test {
namespace {

using Kind = Action::Kind;
using daemon::IdlePolicy;
using provider::PollMode;
using provider::WaitPolicy;

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();
/// Approximate durations on the machine of docs/performance.md.
constexpr Nanoseconds kPoll = 60, kPost = 200, kLook = 150, kMessage = 350, kWakeCall = 1'000;
constexpr Nanoseconds kNotLongAgo = 100'000;

}  // namespace

PingPongs::PingPongs(const MachineConfig& config, size_t pairs, Waits waits, size_t hogs,
                     PollMode mode)
    : machine_(config),
      processors_(config.processors),
      waits_(waits),
      mode_(mode),
      programs_(2 * pairs) {
  daemon_ = &machine_.add(0, [this] { return serve(); });
  for (size_t i = 0; i < programs_.size(); ++i) {
    Program& program = programs_[i];
    program.peer = i ^ 1;
    program.has_message = i % 2 == 0;  // one side of each pair has the first message
    program.thread =
        &machine_.add((i + 1) % config.processors, [this, &program] { return act(program); });
  }
  for (size_t i = 0; i < hogs; ++i) {
    machine_.add(i % config.processors, [] { return Action{Kind::kRun, 1'000'000}; });
  }
}

Action PingPongs::act(Program& program) {
  if (std::exchange(program.posts, false)) {
    program.rings = true;
    program.rang_on = program.thread->processor();
    program.latest_ring = machine_.now();
    if (std::exchange(sleeping_, false)) {
      machine_.wake(*daemon_);
      return {Kind::kRun, kWakeCall};
    }
  }
  const Nanoseconds waited = machine_.now() - program.wait_began;
  if (std::exchange(program.is_yielding, false)) program.policy.gave_way(waited);
  if (std::exchange(program.is_sleeping, false)) program.policy.slept(waited);
  if (!program.has_message) return wait(program);
  program.policy.finds();
  program.has_message = false;
  if (program.latest_message != 0) times_.push_back((machine_.now() - program.latest_message) / 2);
  program.latest_message = machine_.now();
  program.posts = true;
  return {Kind::kRun, kPost};
}

Action PingPongs::wait(Program& program) {
  if (waits_ == Waits::kInMemory) return {Kind::kRun, kPoll};
  if (waits_ == Waits::kSleeping) return {Kind::kSleep, kNever};
  program.policy.finds_nothing(pollers_per_processor());
  program.wait_began = machine_.now();
  switch (program.policy.next(mode_)) {
    case WaitPolicy::Way::kPollOn:
      break;
    case WaitPolicy::Way::kSleep:
      program.is_sleeping = true;
      return {Kind::kSleep, provider::kBudgetConstants.most_ns};
    case WaitPolicy::Way::kGiveWay:
      program.is_yielding = true;
      return {Kind::kYield};
  }
  return {Kind::kRun, kPoll};
}

uint32_t PingPongs::pollers_per_processor() const {
  return static_cast<uint32_t>((programs_.size() + processors_ - 1) / processors_);
}

IdlePolicy::Clients PingPongs::recent() const {
  IdlePolicy::Clients clients{.rung_beside = rung_beside_};
  for (const Program& program : programs_) {
    if (program.latest_ring < 0 || machine_.now() - program.latest_ring > kNotLongAgo) continue;
    if (waits_ == Waits::kSleeping) continue;  // the program waits for an event
    const bool is_beside = program.rang_on == daemon_->processor();
    (is_beside ? clients.beside : clients.elsewhere) = true;
    if (is_beside) clients.beside_gives_way &= program.is_yielding;
  }
  return clients;
}

Action PingPongs::serve() {
  if (std::exchange(yielding_, false)) idle_.gave_way(yield_began_, instant());
  if (std::exchange(slept_, false)) idle_.slept(instant());
  Nanoseconds wakes = 0;
  for (const size_t to : std::exchange(handing_over_, {})) {
    programs_[to].has_message = true;
    if (!programs_[to].thread->is_asleep()) continue;
    machine_.wake(*programs_[to].thread);
    wakes += kWakeCall;
  }
  if (wakes != 0) return {Kind::kRun, wakes};
  for (Program& program : programs_) {
    if (!std::exchange(program.rings, false)) continue;
    handing_over_.push_back(program.peer);
    rung_beside_ = program.rang_on == daemon_->processor();
  }
  if (!handing_over_.empty()) {
    idle_.worked(instant());
    return {Kind::kRun, kLook + kMessage * static_cast<Nanoseconds>(handing_over_.size())};
  }
  switch (idle_.next(instant(), recent())) {
    case IdlePolicy::Way::kLookAgain:
      break;
    case IdlePolicy::Way::kGiveWay:
      yielding_ = true;
      yield_began_ = instant();
      return {Kind::kYield};
    case IdlePolicy::Way::kSleep:
      sleeping_ = slept_ = true;
      return {Kind::kSleep, kNever};
  }
  return {Kind::kRun, kLook};
}

PingPongs::Result PingPongs::run(Nanoseconds time) {
  machine_.run(time);
  if (times_.empty()) return {time, time, 0};
  std::ranges::sort(times_);
  return {times_[times_.size() / 2], times_[times_.size() * 999 / 1000], times_.size()};
}

}  // namespace rocemu::test
