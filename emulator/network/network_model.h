// The implementation of the class Network.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "emulator/network/event_heap.h"
#include "emulator/network/frame_slots.h"
#include "emulator/network/network.h"
#include "emulator/network/network_routes.h"
#include "emulator/network/port_state.h"
#include "emulator/network/switch_buffer.h"

namespace rocemu::network {

class Network::Model {
 public:
  Model(const Topology& topology, uint64_t seed);
  ~Model();

  void inject(const Packet& packet, Instant now);
  std::optional<Instant> next_event() const;
  void advance(Instant now, Sink& sink);

  void set_link_state(LinkId link, bool is_up, Instant now);
  void set_link_rate(LinkId link, uint64_t rate_bps);
  void set_corruption(LinkId link, double probability);
  void reboot_switch(SwitchId switch_id, Duration outage, Instant now);
  void set_pause_storm(HostId host, uint8_t priority, bool is_on, Instant now);
  void set_ecn(SwitchId switch_id, std::optional<EcnThresholds> thresholds);

 private:
  friend class Network;
  class Deliveries;

  /// The kinds of events. Events at the same time happen in this order.
  enum class Kind : uint8_t { kPfcArrival, kArrival, kWakeUp, kOutageEnd };

  struct SwitchState {
    SwitchBuffer buffer;
    uint64_t kmin = UINT64_MAX;  // without ECN: longer than any queue
    uint64_t kmax = UINT64_MAX;
    uint64_t pmax = 0;  // in units of 2^-32
    uint64_t queue_limit = UINT64_MAX;
    uint32_t salt = 0;  // for ECMP
    bool decrements_ttl = false;
    bool is_down = false;
    uint64_t outage_end_ps = 0;

    /// Returns whether to mark a frame that leaves the port while `queue_bytes` stay in the port's
    /// queue.
    bool is_marking(PortState& port, uint64_t queue_bytes) const;
  };

  void happen(const NetworkEvent& event);
  void on_pfc(PortId at, uint32_t value);
  void on_arrival(PortId at, uint32_t frame);
  void forward(PortId at, uint32_t frame);
  void enqueue(PortId port, uint32_t frame);
  std::optional<PortId> next_port(SwitchId from, const FrameSlot& frame) const;
  void end_outage(SwitchId switch_id);

  /// Begins to send a frame if the port is idle and has a frame that it may send.
  void serve(PortId port);
  void send_pfc(PortId port);
  void send_frame(PortId port, uint8_t candidates);
  void leave_buffer(PortId port, const FrameSlot& frame);
  void discard_queues(PortId port);
  void lose(uint32_t frame, PortId where, DropReason why);

  void push(uint64_t time_ps, Kind kind, uint32_t place, uint32_t value);
  void wake_up(PortId port, uint64_t time_ps);
  void update_pause(PortId ingress, uint8_t priority);
  void update_links(Instant now);
  bool link_should_be_up(LinkId link) const;

  PriorityCounters& counters_of(PortId port, uint8_t priority) {
    return counters_[port * kPriorities + priority];
  }

  Topology topology_;
  Shares shares_;
  std::vector<PortState> ports_;
  std::vector<PortInfo> port_infos_;
  std::vector<SwitchState> switches_;
  std::vector<PriorityCounters> counters_;  // by port and priority
  std::vector<std::array<PortId, 2>> link_ports_;
  std::vector<bool> link_is_wanted_up_;
  std::vector<bool> link_is_up_;
  Routes routes_;
  FrameSlots frames_;
  EventHeap events_;
  uint64_t now_ps_ = 0;
  uint64_t hops_ = 0;
  Sink* sink_ = nullptr;  // during advance()
  bool observes_hops_ = false;
  std::unique_ptr<Deliveries> deliveries_;  // null unless deliveries are tracked
};

}  // namespace rocemu::network
