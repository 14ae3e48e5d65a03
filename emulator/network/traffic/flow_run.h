// Simulates synthetic flows on a network: hosts send frames at the rate that their congestion
// control allows, and receivers send CNPs. There is no RDMA protocol: a lost frame is immediately
// sent again.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/engine/base/rate_controller.h"
#include "emulator/network/network.h"
#include "emulator/network/network_routes.h"

namespace rocemu::network {

using engine::CnpLimiter;
using engine::Pacer;
using engine::RateController;

enum class RateScheme : uint8_t { kNone, kDcqcn, kTimely };

struct FlowSpec {
  HostId from = 0;
  HostId to = 0;
  uint64_t bytes = 0;  // payload
  Instant start{};
};

struct FlowResult {
  FlowSpec spec;
  Instant end{};
  bool is_complete = false;
  uint64_t received_bytes = 0;
  uint64_t received_frames = 0;
  uint64_t marked_frames = 0;
  uint64_t lost_frames = 0;
  uint64_t cnps = 0;
};

struct FlowRunOptions {
  RateScheme scheme = RateScheme::kDcqcn;
  uint32_t payload_bytes = 4096;  // of each frame except the last
};

/// The bytes of an RDMA WRITE frame that are not payload: Ethernet with FCS, preamble and gap (38),
/// IPv4 (20), UDP (8), BTH (12), ICRC (4).
inline constexpr uint32_t kFrameOverhead = 82;
/// A CNP has 16 reserved bytes (IBTA vol 1, annex A17.9.3).
inline constexpr uint32_t kCnpBytes = kFrameOverhead + 16;

class FlowRun final : private Sink {
 public:
  /// Creates a run that has no flows yet. `topology` must outlive this object. Its parameters of
  /// DCQCN apply; if it has none, the defaults apply.
  FlowRun(const Topology& topology, uint64_t seed, const FlowRunOptions& options);
  ~FlowRun() override;

  /// Adds a flow and returns its number. Must not be called after run_until().
  size_t add(const FlowSpec& spec);
  /// Simulates until the time `end`. Returns whether anything is left to do.
  bool run_until(Instant end);

  Instant now() const { return now_; }
  Network& network() { return network_; }
  const std::vector<FlowResult>& results() const { return results_; }
  size_t completed() const { return completed_; }
  /// Returns the flow's current rate or, without congestion control, the rate of its link.
  uint64_t rate_bps(size_t flow) const;
  /// Returns the time that the flow would take if the network had no other traffic: all its frames
  /// over the slowest link of its path, and the last frame over the other links.
  Duration alone(size_t flow) const;

 private:
  struct Sender;
  struct HostState;
  struct Wake {
    Instant at{};
    uint32_t host = 0;
    bool operator>(const Wake& other) const {
      return at != other.at ? at > other.at : host > other.host;
    }
  };

  void deliver(uint64_t token, HostId host, Instant at, bool is_marked) override;
  void drop(uint64_t token, PortId where, DropReason why) override;
  void host_resumed(HostId host) override;

  Instant next_time() const;
  void start_flows();
  void pump(HostId host);
  void send_frame(HostId host, uint32_t flow);
  void make_ready(uint32_t flow);
  std::unique_ptr<RateController> make_controller(uint64_t line_rate_bps) const;

  const Topology& topology_;
  FlowRunOptions options_;
  DcqcnParameters dcqcn_;
  Network network_;
  std::vector<PortInfo> ports_;
  Routes routes_;
  std::vector<FlowResult> results_;
  std::vector<Sender> senders_;
  std::vector<HostState> hosts_;
  std::vector<uint32_t> starts_;  // flows by their start, last first
  std::vector<Wake> wakes_;       // a heap
  std::vector<HostId> to_pump_;
  size_t completed_ = 0;
  Instant now_{};
};

}  // namespace rocemu::network
