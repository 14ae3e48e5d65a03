#include "emulator/network/traffic/flow_run.h"

#include <algorithm>
#include <deque>
#include <functional>

#include "emulator/network/dcqcn.h"
#include "emulator/network/timely.h"

namespace rocemu::network {
namespace {

constexpr uint8_t kDataDscp = 26;
constexpr uint8_t kEct0 = 2;

/// The parts of a frame's token: its flow, its kind and its payload.
struct FrameToken {
  uint32_t flow = 0;
  bool is_cnp = false;
  uint32_t payload = 0;

  uint64_t packed() const { return uint64_t{flow} << 32 | uint64_t{is_cnp} << 31 | payload; }
  static FrameToken of(uint64_t token) {
    return {static_cast<uint32_t>(token >> 32), (token >> 31 & 1) != 0,
            static_cast<uint32_t>(token & 0x7fffffff)};
  }
};

}  // namespace

struct FlowRun::Sender {
  std::unique_ptr<RateController> controller;  // while the flow sends
  Pacer pacer;
  CnpLimiter cnps;              // of the flow's receiver
  uint64_t left = 0;            // bytes to send, including retransmissions
  std::deque<Instant> sent_at;  // for frames in flight, used by schemes that react to delay
  bool is_ready = false;        // the flow is in its host's heap
};

/// The flows of a host that have something to send, in a heap with the flow that sends next at the
/// top.
struct FlowRun::HostState {
  struct ReadyFlow {
    Instant ready{};
    uint64_t order = 0;
    uint32_t flow = 0;
    bool operator>(const ReadyFlow& other) const {
      return ready != other.ready ? ready > other.ready : order > other.order;
    }
  };
  std::vector<ReadyFlow> ready_flows;
  uint64_t order = 0;
  Instant wake_at = Instant::max();
  bool is_to_pump = false;
};

FlowRun::FlowRun(const Topology& topology, uint64_t seed, const FlowRunOptions& options)
    : topology_(topology),
      options_(options),
      dcqcn_(topology.nic.dcqcn.value_or(DcqcnParameters())),
      network_(topology, seed),
      ports_(ports_of(topology)),
      routes_(topology, ports_),
      hosts_(topology.hosts.size()) {
  routes_.compute(std::vector<bool>(topology.links.size(), true));
}

FlowRun::~FlowRun() = default;

size_t FlowRun::add(const FlowSpec& spec) {
  results_.push_back({.spec = spec});
  senders_.emplace_back();
  senders_.back().left = spec.bytes;
  starts_.push_back(static_cast<uint32_t>(results_.size() - 1));
  return results_.size() - 1;
}

std::unique_ptr<RateController> FlowRun::make_controller(uint64_t line_rate_bps) const {
  switch (options_.scheme) {
    case RateScheme::kNone:
      break;
    case RateScheme::kDcqcn:
      return std::make_unique<Dcqcn>(dcqcn_, line_rate_bps);
    case RateScheme::kTimely:
      return std::make_unique<Timely>(TimelyParameters(), line_rate_bps);
  }
  return nullptr;
}

uint64_t FlowRun::rate_bps(size_t flow) const {
  const Sender& sender = senders_[flow];
  if (sender.controller != nullptr) return sender.controller->rate_bps();
  return network_.rate_bps(ports_[results_[flow].spec.from].link);
}

Instant FlowRun::next_time() const {
  Instant next = network_.next_event().value_or(Instant::max());
  if (!wakes_.empty()) next = std::min(next, wakes_.front().at);
  if (!starts_.empty()) next = std::min(next, results_[starts_.back()].spec.start);
  return next;
}

bool FlowRun::run_until(Instant end) {
  // The flows are sorted at the first call. Flows with the same start stay in the order in which
  // they were added.
  const auto is_later = [&](uint32_t a, uint32_t b) {
    const Instant first = results_[a].spec.start, second = results_[b].spec.start;
    return first != second ? first > second : a > b;
  };
  if (!std::is_sorted(starts_.begin(), starts_.end(), is_later))
    std::sort(starts_.begin(), starts_.end(), is_later);
  while (true) {
    const Instant next = next_time();
    if (next > end) break;
    now_ = std::max(now_, next);
    network_.advance(now_, *this);
    while (!wakes_.empty() && wakes_.front().at <= now_) {
      const uint32_t host = wakes_.front().host;
      std::pop_heap(wakes_.begin(), wakes_.end(), std::greater<>());
      wakes_.pop_back();
      hosts_[host].wake_at = Instant::max();
      host_resumed(host);
    }
    start_flows();
    for (size_t i = 0; i < to_pump_.size(); ++i) pump(to_pump_[i]);
    to_pump_.clear();
  }
  now_ = std::max(now_, end);
  return next_time() != Instant::max();
}

void FlowRun::start_flows() {
  while (!starts_.empty() && results_[starts_.back()].spec.start <= now_) {
    const uint32_t flow = starts_.back();
    starts_.pop_back();
    senders_[flow].controller =
        make_controller(network_.rate_bps(ports_[results_[flow].spec.from].link));
    make_ready(flow);
  }
}

void FlowRun::make_ready(uint32_t flow) {
  Sender& sender = senders_[flow];
  if (sender.is_ready || sender.left == 0) return;
  sender.is_ready = true;
  const HostId from = results_[flow].spec.from;
  HostState& host = hosts_[from];
  host.ready_flows.push_back({sender.pacer.ready_at(), host.order++, flow});
  std::push_heap(host.ready_flows.begin(), host.ready_flows.end(), std::greater<>());
  host_resumed(from);
}

void FlowRun::pump(HostId id) {
  HostState& host = hosts_[id];
  host.is_to_pump = false;
  const uint8_t priority = network_.priority_of(kDataDscp);
  while (!host.ready_flows.empty() && host.ready_flows.front().ready <= now_ &&
         network_.can_inject(id, priority)) {
    const uint32_t flow = host.ready_flows.front().flow;
    std::pop_heap(host.ready_flows.begin(), host.ready_flows.end(), std::greater<>());
    host.ready_flows.pop_back();
    senders_[flow].is_ready = false;
    send_frame(id, flow);
  }
  if (host.ready_flows.empty()) return;
  const Instant ready = host.ready_flows.front().ready;
  if (ready <= now_ || ready >= host.wake_at) return;
  host.wake_at = ready;
  wakes_.push_back({ready, id});
  std::push_heap(wakes_.begin(), wakes_.end(), std::greater<>());
}

void FlowRun::send_frame(HostId id, uint32_t flow) {
  Sender& sender = senders_[flow];
  const FlowSpec& spec = results_[flow].spec;
  const auto payload =
      static_cast<uint32_t>(std::min<uint64_t>(sender.left, options_.payload_bytes));
  const uint32_t bytes = payload + kFrameOverhead;
  sender.left -= payload;
  if (options_.scheme == RateScheme::kTimely) sender.sent_at.push_back(now_);
  uint64_t rate = network_.rate_bps(ports_[id].link);
  if (sender.controller != nullptr) {
    sender.controller->on_sent(bytes, now_);
    rate = sender.controller->rate_bps();
  }
  sender.pacer.sent(bytes, rate, now_);
  network_.inject({.token = FrameToken{flow, false, payload}.packed(),
                   .from = id,
                   .to = spec.to,
                   .bytes_on_wire = bytes,
                   .flow_hash = flow * 0x9e3779b9u,
                   .dscp = kDataDscp,
                   .ecn = kEct0},
                  now_);
  if (sender.left == 0) return;
  sender.is_ready = true;
  HostState& host = hosts_[id];
  host.ready_flows.push_back({sender.pacer.ready_at(), host.order++, flow});
  std::push_heap(host.ready_flows.begin(), host.ready_flows.end(), std::greater<>());
}

void FlowRun::deliver(uint64_t token, HostId host, Instant at, bool is_marked) {
  const FrameToken frame = FrameToken::of(token);
  FlowResult& result = results_[frame.flow];
  Sender& sender = senders_[frame.flow];
  if (frame.is_cnp) {
    if (sender.controller != nullptr) sender.controller->on_cnp(at);
    return;
  }
  result.received_bytes += frame.payload;
  ++result.received_frames;
  result.marked_frames += is_marked;
  if (options_.scheme == RateScheme::kDcqcn &&
      sender.cnps.should_send(is_marked, at, dcqcn_.cnp_interval)) {
    ++result.cnps;
    network_.inject({.token = FrameToken{frame.flow, true, 0}.packed(),
                     .from = host,
                     .to = result.spec.from,
                     .bytes_on_wire = kCnpBytes,
                     .flow_hash = frame.flow,
                     .dscp = dcqcn_.cnp_dscp},
                    now_);
  }
  // The acknowledgement itself is not simulated: it is assumed to return over an idle path.
  if (!sender.sent_at.empty()) {
    if (sender.controller != nullptr)
      sender.controller->on_acknowledged(frame.payload, at - sender.sent_at.front(), at);
    sender.sent_at.pop_front();
  }
  if (result.received_bytes < result.spec.bytes) return;
  result.is_complete = true;
  result.end = at;
  sender.controller.reset();
  ++completed_;
}

void FlowRun::drop(uint64_t token, PortId, DropReason) {
  const FrameToken frame = FrameToken::of(token);
  if (frame.is_cnp) return;
  ++results_[frame.flow].lost_frames;
  if (!senders_[frame.flow].sent_at.empty()) senders_[frame.flow].sent_at.pop_front();
  senders_[frame.flow].left += frame.payload;
  make_ready(frame.flow);
}

void FlowRun::host_resumed(HostId host) {
  if (hosts_[host].is_to_pump) return;
  hosts_[host].is_to_pump = true;
  to_pump_.push_back(host);
}

Duration FlowRun::alone(size_t flow) const {
  const FlowSpec& spec = results_[flow].spec;
  const uint64_t frames = (spec.bytes + options_.payload_bytes - 1) / options_.payload_bytes;
  const auto bytes = static_cast<double>(spec.bytes + frames * kFrameOverhead);
  const auto last =
      static_cast<double>(std::min<uint64_t>(spec.bytes, options_.payload_bytes) + kFrameOverhead);
  double ns = 0;
  uint64_t slowest = UINT64_MAX;
  PortId port = spec.from;
  for (size_t hop = 0; hop <= topology_.links.size(); ++hop) {
    const Link& link = topology_.links[ports_[port].link];
    slowest = std::min(slowest, link.rate_bps);
    ns += last * 8e9 / static_cast<double>(link.rate_bps) + static_cast<double>(link.delay.count());
    const NodeRef node = ports_[ports_[port].peer].node;
    if (!node.is_switch) break;
    const auto next = routes_.ports_to(node.index, spec.to);
    if (next.empty()) break;
    port = next[0];
  }
  return Duration(static_cast<int64_t>(ns + (bytes - last) * 8e9 / static_cast<double>(slowest)));
}

}  // namespace rocemu::network
