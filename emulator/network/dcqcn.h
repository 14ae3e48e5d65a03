// The reaction point of DCQCN, which controls the rate of a flow: Zhu et al., "Congestion Control
// for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.
#pragma once

#include "emulator/engine/base/rate_controller.h"
#include "emulator/network/dcqcn_parameters.h"

namespace rocemu::network {

using engine::RateController;

class Dcqcn final : public RateController {
 public:
  /// Begins a flow at the time `start`, with the largest possible alpha.
  Dcqcn(const DcqcnParameters& parameters, uint64_t line_rate_bps, engine::Instant start = {});

  void advance(engine::Instant now) override;
  void on_sent(uint32_t bytes, engine::Instant now) override;
  void on_cnp(engine::Instant now) override;
  void on_acknowledged(uint32_t, engine::Duration, engine::Instant) override {}

  uint64_t rate_bps() const override { return current_; }
  std::optional<engine::Instant> next_deadline() const override;

  double alpha() const { return static_cast<double>(alpha_) / static_cast<double>(kOne); }
  uint64_t target_rate_bps() const { return target_; }
  uint64_t cnps_handled() const { return cnps_handled_; }

 private:
  /// The fraction 1. Fractions are in units of 2^-31, and rates in whole bits per second: integers
  /// give the same result on every processor and with every compiler.
  static constexpr uint64_t kOne = uint64_t{1} << 31;

  bool is_recovering() const { return current_ < line_rate_; }
  void increase();

  DcqcnParameters parameters_;
  uint64_t g_;
  uint64_t line_rate_;  // bits per second, like the two below
  uint64_t current_;
  uint64_t target_;
  uint64_t alpha_ = kOne;
  engine::Instant alpha_since_{};     // the last update of alpha
  engine::Instant increase_since_{};  // the last expiry of the increase timer
  uint64_t bytes_ = 0;                // sent since the byte counter last expired
  uint32_t timer_steps_ = 0;          // expiries since the last decrease
  uint32_t byte_steps_ = 0;
  uint64_t cnps_handled_ = 0;
};

}  // namespace rocemu::network
