#include "emulator/network/timely.h"

#include <algorithm>

namespace rocemu::network {

Timely::Timely(const TimelyParameters& parameters, uint64_t line_rate_bps)
    : parameters_(parameters),
      line_rate_(static_cast<double>(line_rate_bps)),
      rate_(static_cast<double>(line_rate_bps)) {}

void Timely::on_acknowledged(uint32_t bytes, engine::Duration round_trip, engine::Instant) {
  bytes_ += bytes;
  if (bytes_ < parameters_.segment_bytes) return;
  bytes_ = 0;
  update(static_cast<double>(round_trip.count()));
}

void Timely::update(double round_trip_ns) {
  const double weight = parameters_.ewma_weight;
  if (previous_ns_ != 0) {
    difference_ns_ = (1 - weight) * difference_ns_ + weight * (round_trip_ns - previous_ns_);
  }
  previous_ns_ = round_trip_ns;
  const double gradient =
      difference_ns_ / static_cast<double>(parameters_.minimum_round_trip.count());
  const auto low = static_cast<double>(parameters_.low.count());
  const auto high = static_cast<double>(parameters_.high.count());
  const auto step = static_cast<double>(parameters_.additive_increase_bps);
  if (round_trip_ns < low) {
    rate_ += step;
  } else if (round_trip_ns > high) {
    rate_ *= 1 - parameters_.beta * (1 - high / round_trip_ns);
    increases_ = 0;
  } else if (gradient <= 0) {
    ++increases_;
    rate_ += (increases_ >= parameters_.hyper_increase_threshold ? 5 : 1) * step;
  } else {
    // The gradient is relative to the minimum round-trip time. The limit of the decrease keeps the
    // rate from becoming negative.
    rate_ *= 1 - std::min(parameters_.beta * gradient, parameters_.beta);
    increases_ = 0;
  }
  rate_ = std::clamp(rate_, static_cast<double>(parameters_.minimum_rate_bps), line_rate_);
}

}  // namespace rocemu::network
