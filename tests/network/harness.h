// Runs a Network alone, with a sink that records the events, and with senders that never pause.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emulator/network/network.h"
#include "emulator/network/network_shapes.h"

namespace rocemu::network::testing {

inline Instant at_ns(int64_t ns) {
  return Instant(Duration(ns));
}

struct Delivery {
  uint64_t token = 0;
  HostId host = 0;
  Instant at{};
  bool is_marked = false;

  bool operator==(const Delivery&) const = default;
};

struct Loss {
  uint64_t token = 0;
  PortId where = 0;
  DropReason why{};

  bool operator==(const Loss&) const = default;
};

/// Records all events.
class Log : public Sink {
 public:
  void deliver(uint64_t token, HostId host, Instant at, bool is_marked) override {
    deliveries.push_back({token, host, at, is_marked});
  }
  void drop(uint64_t token, PortId where, DropReason why) override {
    losses.push_back({token, where, why});
  }
  void host_resumed(HostId host) override { resumed.push_back(host); }
  void on_hop(const Hop& hop) override { hops.push_back(hop); }

  std::vector<Delivery> deliveries;
  std::vector<Loss> losses;
  std::vector<HostId> resumed;
  std::vector<Hop> hops;
};

/// A flow that always has a frame to send.
struct Flow {
  HostId from = 0;
  HostId to = 0;
  uint32_t bytes = 4200;
  uint8_t dscp = 0;
  uint8_t ecn = 2;
  uint32_t hash = 0;
  uint64_t frames = UINT64_MAX;  // left to send
  uint64_t delivered_bytes = 0;
  uint64_t delivered_frames = 0;
  uint64_t marked_frames = 0;
  uint64_t lost_frames = 0;
};

/// Keeps the queues of the NICs full. The flows of a host take turns.
class Saturation : public Sink {
 public:
  Saturation(Network& network, std::vector<Flow> all) : flows(std::move(all)), network_(network) {}

  void deliver(uint64_t token, HostId, Instant, bool is_marked) override {
    Flow& flow = flows[token];
    flow.delivered_bytes += flow.bytes;
    ++flow.delivered_frames;
    flow.marked_frames += is_marked;
  }
  void drop(uint64_t token, PortId, DropReason) override { ++flows[token].lost_frames; }
  void host_resumed(HostId) override { has_room_ = true; }

  void run_until(Instant end) {
    fill();
    while (true) {
      const std::optional<Instant> next = network_.next_event();
      if (!next || *next > end) break;
      now_ = std::max(now_, *next);
      network_.advance(now_, *this);
      if (has_room_) fill();
    }
    now_ = end;
    network_.advance(end, *this);
  }
  /// Sets the counts of all flows to zero.
  void forget() {
    for (Flow& flow : flows)
      flow.delivered_bytes = flow.delivered_frames = flow.marked_frames = flow.lost_frames = 0;
  }

  std::vector<Flow> flows;

 private:
  void fill() {
    has_room_ = false;
    for (bool is_done = false; !is_done;) {
      is_done = true;
      for (uint64_t i = 0; i < flows.size(); ++i) {
        const size_t turn = (i + first_) % flows.size();
        Flow& flow = flows[turn];
        if (flow.frames == 0 || !network_.can_inject(flow.from, network_.priority_of(flow.dscp)))
          continue;
        --flow.frames;
        is_done = false;
        network_.inject({.token = turn,
                         .from = flow.from,
                         .to = flow.to,
                         .bytes_on_wire = flow.bytes,
                         .flow_hash = flow.hash,
                         .dscp = flow.dscp,
                         .ecn = flow.ecn},
                        now_);
      }
      ++first_;
    }
  }

  Network& network_;
  Instant now_{};
  uint64_t first_ = 0;
  bool has_room_ = true;
};

/// Advances event by event until no work remains, or until `end`.
inline void run(Network& network, Sink& sink, Instant end = at_ns(1'000'000'000'000)) {
  while (const std::optional<Instant> next = network.next_event()) {
    if (*next > end) break;
    network.advance(*next, sink);
  }
}

inline uint64_t total(const Network& network, uint64_t PriorityCounters::*counter) {
  uint64_t sum = 0;
  for (PortId port = 0; port < network.port_count(); ++port)
    for (uint8_t i = 0; i < kPriorities; ++i) sum += network.counters(port, i).*counter;
  return sum;
}

}  // namespace rocemu::network::testing
