// TIMELY, a congestion control that reacts to delay and needs no support from switches: Mittal et
// al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, algorithm 1.
#pragma once

#include "emulator/engine/base/rate_controller.h"

namespace rocemu::network {

using engine::RateController;

/// The parameters of TIMELY. The defaults are those of section 4.4 and of the evaluation in the
/// paper.
struct TimelyParameters {
  double ewma_weight = 0.875;  // weight of the new difference of round-trip times
  double beta = 0.8;           // factor of the multiplicative decrease
  uint64_t additive_increase_bps = 10'000'000;
  engine::Duration low = std::chrono::microseconds(50);
  engine::Duration high = std::chrono::microseconds(500);
  engine::Duration minimum_round_trip = std::chrono::microseconds(20);
  uint32_t hyper_increase_threshold = 5;
  /// The number of acknowledged bytes after which the rate changes.
  uint32_t segment_bytes = 16384;
  uint64_t minimum_rate_bps = 10'000'000;
};

class Timely final : public RateController {
 public:
  Timely(const TimelyParameters& parameters, uint64_t line_rate_bps);

  void advance(engine::Instant) override {}
  void on_sent(uint32_t, engine::Instant) override {}
  void on_cnp(engine::Instant) override {}
  void on_acknowledged(uint32_t bytes, engine::Duration round_trip, engine::Instant now) override;

  uint64_t rate_bps() const override { return static_cast<uint64_t>(rate_); }
  std::optional<engine::Instant> next_deadline() const override { return std::nullopt; }

 private:
  void update(double round_trip_ns);

  TimelyParameters parameters_;
  double line_rate_;
  double rate_;
  double previous_ns_ = 0;  // 0: no round-trip time yet
  double difference_ns_ = 0;
  uint32_t bytes_ = 0;
  uint32_t increases_ = 0;  // consecutive increases with a gradient that is not positive
};

}  // namespace rocemu::network
