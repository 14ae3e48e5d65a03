// The reaction point of DCQCN: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments",
// SIGCOMM 2015, section 3.
#pragma once

#include "emulator/network/rate_controller.h"

namespace rocemu::network {

class Dcqcn final : public RateController {
 public:
  Dcqcn(const DcqcnParameters& parameters, uint64_t line_rate_bps);

  void advance(engine::Instant now) override;
  void on_sent(uint32_t bytes, engine::Instant now) override;
  void on_cnp(engine::Instant now) override;
  void on_acknowledged(uint32_t, engine::Duration, engine::Instant) override {}

  uint64_t rate_bps() const override { return static_cast<uint64_t>(current_); }
  std::optional<engine::Instant> next_deadline() const override;

  double alpha() const { return alpha_; }
  uint64_t target_rate_bps() const { return static_cast<uint64_t>(target_); }
  uint64_t cnps_handled() const { return cnps_handled_; }

 private:
  void decay_alpha(engine::Instant now);
  void increase();

  DcqcnParameters parameters_;
  double line_rate_;  // bits per second, as the two below
  double current_;
  double target_;
  double alpha_ = 1;
  engine::Instant alpha_since_{};     // of the last update of alpha
  engine::Instant increase_since_{};  // of the last expiry of the increase timer
  uint64_t bytes_ = 0;                // since the byte counter last expired
  uint32_t timer_steps_ = 0;          // since the last decrease
  uint32_t byte_steps_ = 0;
  uint64_t cnps_handled_ = 0;
};

}  // namespace rocemu::network
