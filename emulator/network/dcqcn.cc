#include "emulator/network/dcqcn.h"

#include <algorithm>
#include <cmath>

namespace rocemu::network {
namespace {

/// Returns the product of `rate` and a fraction, which is given in units of 2^-31.
uint64_t scaled(uint64_t rate, uint64_t fraction) {
  constexpr uint64_t kLow = (uint64_t{1} << 31) - 1;
  return (rate >> 31) * fraction + ((rate & kLow) * fraction >> 31);
}

}  // namespace

Dcqcn::Dcqcn(const DcqcnParameters& parameters, uint64_t line_rate_bps, engine::Instant start)
    : parameters_(parameters),
      g_(static_cast<uint64_t>(std::llround(parameters.g * static_cast<double>(kOne)))),
      line_rate_(line_rate_bps),
      current_(line_rate_bps),
      target_(line_rate_bps),
      alpha_since_(start),
      increase_since_(start) {}

void Dcqcn::advance(engine::Instant now) {
  // Alpha and the rate do not influence each other between CNPs, so they can be updated one after
  // the other.
  while (now - alpha_since_ >= parameters_.alpha_interval) {
    alpha_since_ += parameters_.alpha_interval;
    const uint64_t decayed = alpha_ - scaled(alpha_, g_);
    if (decayed == alpha_) {  // the smallest value
      alpha_since_ = now;
      break;
    }
    alpha_ = decayed;
  }
  while (is_recovering() && now - increase_since_ >= parameters_.increase_interval) {
    increase_since_ += parameters_.increase_interval;
    ++timer_steps_;
    increase();
  }
}

void Dcqcn::on_sent(uint32_t bytes, engine::Instant now) {
  advance(now);
  if (!is_recovering()) return;
  bytes_ += bytes;
  while (bytes_ >= parameters_.byte_counter && is_recovering()) {
    bytes_ -= parameters_.byte_counter;
    ++byte_steps_;
    increase();
  }
}

// Applies equation (1) of the paper, and restarts the increase of the rate.
void Dcqcn::on_cnp(engine::Instant now) {
  advance(now);
  ++cnps_handled_;
  target_ = current_;
  current_ = std::max(current_ - scaled(current_, alpha_ / 2),
                      std::min(parameters_.minimum_rate_bps, line_rate_));
  alpha_ = std::min(kOne, alpha_ - scaled(alpha_, g_) + g_);
  alpha_since_ = now;
  increase_since_ = now;
  bytes_ = 0;
  timer_steps_ = 0;
  byte_steps_ = 0;
}

// Applies equations (3) and (4), or the hyper increase of figure 7, depending on whether the timer
// and the byte counter have expired more than fast_recovery_steps times.
void Dcqcn::increase() {
  const uint32_t most = std::max(timer_steps_, byte_steps_);
  const uint32_t least = std::min(timer_steps_, byte_steps_);
  if (least > parameters_.fast_recovery_steps) {
    target_ += (least - parameters_.fast_recovery_steps) * parameters_.hyper_increase_bps;
  } else if (most > parameters_.fast_recovery_steps) {
    target_ += parameters_.additive_increase_bps;
  }
  target_ = std::min(target_, line_rate_);
  current_ = (target_ + current_ + 1) / 2;
}

std::optional<engine::Instant> Dcqcn::next_deadline() const {
  if (!is_recovering()) return std::nullopt;
  return increase_since_ + parameters_.increase_interval;
}

}  // namespace rocemu::network
