#include "emulator/explore/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <string>

namespace rocemu::explore {
namespace {

constexpr std::chrono::milliseconds kOnTerminal{200}, kElsewhere{10'000};
constexpr size_t kWidth = 24;

}  // namespace

Progress::Progress(size_t total, size_t done)
    : total_(total),
      done_(done),
      begun_with_(done),
      terminal_(isatty(STDERR_FILENO) == 1),
      since_(Clock::now()),
      shown_(since_) {}

Progress::~Progress() {
  if (terminal_) std::cerr << "\r\033[K" << std::flush;
}

void Progress::advance(bool is_bad) {
  ++done_;
  if (is_bad) ++bad_;
  const Clock::time_point now = Clock::now();
  if (now - shown_ >= (terminal_ ? kOnTerminal : kElsewhere)) show(now);
}

void Progress::show(Clock::time_point now) {
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - since_).count();
  const double rate = static_cast<double>(done_ - begun_with_) / seconds;
  const double left = rate > 0 ? static_cast<double>(total_ - done_) / rate : 0;
  const std::string text = fmt::format("{} of {} faults, {:.0f}/s, {:.0f} s left, {} ended badly",
                                       done_, total_, rate, left, bad_);
  if (!terminal_) {
    std::cerr << text + "\n";
    return;
  }
  const size_t filled = total_ == 0 ? kWidth : done_ * kWidth / total_;
  std::cerr << "\r\033[K[" + std::string(filled, '#') + std::string(kWidth - filled, '-') + "] " +
                   text
            << std::flush;
}

}  // namespace rocemu::explore
