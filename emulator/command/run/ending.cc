#include "emulator/command/run/ending.h"

#include <signal.h>

namespace rocemu::command {
namespace {

/// timeout(1) sends its signal first to its child and then to the whole process group. So two
/// signals within this time count as one.
constexpr std::chrono::milliseconds kOneSignal{200};

}  // namespace

Ending::Action Ending::on_signal(int signal, bool is_caught, Time now) {
  const bool is_interrupt = signal == SIGINT || signal == SIGQUIT;
  if (is_interrupt) {
    const std::optional<Time> before = interrupted_;
    if (before && now - *before < kOneSignal) return Action::kNone;
    interrupted_ = now;
    const bool is_second = signal_ || (before && now - *before <= kEndingGrace);
    if (is_second) {
      if (!signal_) signal_ = signal;
      kill_at_ = now;
      return Action::kKill;
    }
    if (is_caught) return Action::kPassOn;
  } else if (signal_) {
    return Action::kNone;
  }
  signal_ = signal;
  kill_at_ = now + kEndingGrace;
  return Action::kPassOn;
}

}  // namespace rocemu::command
