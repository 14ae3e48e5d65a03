// The parameters of DCQCN, with the defaults of its paper: Zhu et al., "Congestion Control for
// Large-Scale RDMA Deployments", SIGCOMM 2015, section 5.2 and figure 14.
#pragma once

#include <cstdint>

#include "emulator/engine/base/time.h"

namespace rocemu::network {

struct DcqcnParameters {
  /// The notification point sends at most one CNP for a flow in this time.
  engine::Duration cnp_interval = std::chrono::microseconds(50);
  /// The gain of alpha.
  double g = 1.0 / 256;
  /// Alpha decays once in this time without CNP.
  engine::Duration alpha_interval = std::chrono::microseconds(55);
  /// The rate increases once in this time, and once each time that many bytes were sent.
  engine::Duration increase_interval = std::chrono::microseconds(55);
  uint64_t byte_counter = 10'000'000;
  /// Increases by either that are fast recovery, before additive increase.
  uint32_t fast_recovery_steps = 5;
  uint64_t additive_increase_bps = 40'000'000;
  uint64_t hyper_increase_bps = 400'000'000;
  /// The rate does not fall below this.
  uint64_t minimum_rate_bps = 10'000'000;
  /// The DSCP of CNPs.
  uint8_t cnp_dscp = 48;

  bool operator==(const DcqcnParameters&) const = default;
};

}  // namespace rocemu::network
