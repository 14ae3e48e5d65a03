// The parameters of DCQCN, with the defaults of its paper: Zhu et al., "Congestion Control for
// Large-Scale RDMA Deployments", SIGCOMM 2015, section 5.2 and figure 14.
#pragma once

#include <cstdint>

#include "emulator/engine/base/time.h"

namespace rocemu::network {

struct DcqcnParameters {
  /// The minimum time between two CNPs that the notification point sends for a flow.
  engine::Duration cnp_interval = std::chrono::microseconds(50);
  /// The gain g with which alpha is updated.
  double g = 1.0 / 256;
  /// The time without a CNP after which alpha decays.
  engine::Duration alpha_interval = std::chrono::microseconds(55);
  /// The rate increases each time this interval has passed, and each time `byte_counter` bytes were
  /// sent.
  engine::Duration increase_interval = std::chrono::microseconds(55);
  uint64_t byte_counter = 10'000'000;
  /// The number of increases by the timer, or by the byte counter, that belong to fast recovery.
  /// After them, additive increase begins.
  uint32_t fast_recovery_steps = 5;
  uint64_t additive_increase_bps = 40'000'000;
  uint64_t hyper_increase_bps = 400'000'000;
  /// The lower limit of the rate.
  uint64_t minimum_rate_bps = 10'000'000;
  /// The DSCP of CNPs.
  uint8_t cnp_dscp = 48;

  bool operator==(const DcqcnParameters&) const = default;
};

}  // namespace rocemu::network
