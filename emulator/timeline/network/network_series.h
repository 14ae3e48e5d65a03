// The traffic, queues, marks and pauses of each port of a simulated network, as functions of the
// virtual time of a recorded run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/engine/base/time.h"

namespace rocemu::timeline {

/// The values of one port in one interval of time.
struct PortInterval {
  uint64_t tx_bytes = 0;
  uint64_t longest_queue_bytes = 0;
  uint64_t ecn_marks = 0;
  uint64_t drops = 0;
  uint64_t tx_pauses = 0;
  uint64_t rx_pauses = 0;

  bool is_quiet() const {
    return tx_bytes == 0 && longest_queue_bytes == 0 && drops == 0 && tx_pauses == 0 &&
           rx_pauses == 0;
  }
  PortInterval& operator+=(const PortInterval& other);
};

struct PortSeries {
  std::string port;  // "s1:3"
  std::string peer;  // the port at the other end of the link
  uint64_t rate_bps = 0;
  std::vector<PortInterval> intervals;
  PortInterval total;
};

/// The bytes that a QP sent in each interval, including acknowledgements.
struct QpSeries {
  std::string host;
  uint32_t qp_num = 0;
  uint64_t rate_bps = 0;  // of the host's link
  std::vector<uint64_t> tx_bytes;
  uint64_t total_bytes = 0;
};

struct NetworkSeries {
  engine::Instant begin{};      // of the first interval
  engine::Duration interval{};  // the length of each
  size_t interval_count = 0;
  std::vector<PortSeries> ports;  // only ports that sent or lost a frame
  std::vector<QpSeries> qps;      // only QPs that sent a frame, by host and number
};

/// Selects the part of the run and the ports to show, and the length of an interval.
struct SeriesOptions {
  std::optional<engine::Instant> from;  // default: the first frame
  std::optional<engine::Instant> to;    // default: the last frame
  /// The length of an interval. By default, a power of two of microseconds, so that there are 100
  /// to 200 intervals.
  std::optional<engine::Duration> interval;
  /// The names of the ports to show; empty for all ports. For a host's port, the QPs of the host
  /// are shown, too.
  std::vector<std::string> ports;
};

/// Returns the utilization of a link with the given rate when `tx_bytes` are sent in `time`: a
/// fraction of 1.
double utilization(uint64_t rate_bps, uint64_t tx_bytes, engine::Duration time);

/// Replays the recording in that directory, and returns the series. Throws JournalError if the
/// recording cannot be read, and std::runtime_error if the run had no simulated network, or the
/// replay differs from the recording.
NetworkSeries read_network_series(const std::string& directory, const SeriesOptions& options);

}  // namespace rocemu::timeline
