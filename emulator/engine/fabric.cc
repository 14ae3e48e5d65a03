#include "emulator/engine/fabric.h"

#include <algorithm>
#include <utility>

#include "emulator/engine/transport/address_vector.h"
#include "emulator/engine/transport/completer.h"
#include "emulator/engine/transport/receive_queue.h"
#include "emulator/engine/transport/requester.h"
#include "emulator/engine/transport/response_queue.h"
#include "emulator/engine/transport/send_queue.h"

namespace rocemu::engine {
namespace {

/// Frames that one step moves at most, so that the caller soon looks at its other work.
constexpr uint32_t kFramesPerStep = 256;
/// While so many frames are delayed, nobody sends further ones: they are 4 KiB each.
constexpr size_t kMaxDelayedFrames = 16384;

std::vector<std::string> names_of(const std::vector<DeviceConfig>& devices) {
  std::vector<std::string> names;
  for (const DeviceConfig& device : devices) names.push_back(device.name);
  return names;
}

}  // namespace

Fabric::Fabric(FabricConfig config, HostMemory& memory)
    : qps(config.shard.qpns().first, config.shard.qpns().count, kMaxQps),
      mrs(config.seed),
      connections(*this, config.seed),
      faults(*this, config.seed, names_of(config.devices)),
      config_(std::move(config)),
      host_memory_(memory) {
  for (const DeviceConfig& device : config_.devices) devices_.emplace_back(device);
}

void Fabric::begin_step(Instant now, Outputs& outputs) {
  step_.begin(now, outputs);
  faults.release_due();
  completions_.release_events();
}

void Fabric::begin_expiry() {
  expiring_ = next_timeout() <= now();
}

/// IBTA vol 1, 9.7.6.1.3 leaves open how late a timeout is noticed. An engine that was not stepped
/// for a while finds timers due whose answers are under way, or are still to be made by a responder
/// that had no turn: those come first, once around.
bool Fabric::may_expire() {
  if (!may_produce_frames()) return true;
  if (!last_turn_before_expiry_) last_turn_before_expiry_ = turns_scheduled_;
  return turns_taken_ >= *last_turn_before_expiry_;
}

void Fabric::run() {
  fail_users_of_overrun_cqs();
  faults.events.fail_qps();
  // A rule may keep a packet from being executed: then its payload stays out of memory.
  const bool makes_runs = !link_.paused() && !faults.watches(faults::Where::kRequest);
  for (uint32_t moved = 0; moved < kFramesPerStep && !faults.devices.has_removals();) {
    const bool arrives = link_.has_arrived(now());
    if (!arrives && expiring_ && may_expire()) [[unlikely]] {
      expire_timers();
    } else if (arrives) {
      if (link_.is_held()) break;
      const InFlight in_flight = link_.take();
      if (run_.empty() && makes_runs) run_.begin(in_flight, link_, now(), kFramesPerStep - moved);
      if (in_flight.check_icrc) {
        arrive_if_intact(in_flight.to, in_flight.frame.bytes(), in_flight.from_outside);
      } else if (in_flight.frame.packet() != nullptr) {
        arrive_parsed(in_flight.to, in_flight.frame);
      } else {
        arrive(in_flight.to, in_flight.frame.bytes(), in_flight.from_outside);
      }
      run_.advance();
      ++moved;
    } else if (may_produce_frames()) {
      QueuePair* qp = qps.find(schedule_.front());
      schedule_.pop_front();
      ++turns_taken_;
      if (qp != nullptr && qp->scheduled) {
        qp->scheduled = false;
        moved += response_queue::transmit(*this, *qp);
        moved += requester::transmit(*this, *qp);
      }
    } else {
      break;
    }
    fail_users_of_overrun_cqs();
    faults.events.fail_qps();
  }
  run_.clear();  // of what is left another step knows nothing
}

bool Fabric::may_produce_frames() const {
  return !schedule_.empty() && faults.frames.delayed() < kMaxDelayedFrames;
}

std::optional<Instant> Fabric::next_deadline() {
  if (!leaving_.empty()) return now();
  const bool held = link_.is_held();
  const bool arrives_now = link_.has_arrived(now());
  if (arrives_now ? !held : may_produce_frames()) return now();
  std::optional<Instant> first;
  if (const auto timer = next_timer()) first = timer->at;
  if (!link_.empty() && !held && (!first || link_.front().arrives < *first)) {
    first = std::max(now(), link_.front().arrives);
  }
  for (const auto& other :
       {connections.next_deadline(), completions_.next_event(), faults.next_deadline()}) {
    if (other && (!first || *other < *first)) first = other;
  }
  return first;
}

std::optional<TimerQueue::Entry> Fabric::next_timer() {
  return timers_.next([this](QpNumber number) {
    QueuePair* qp = qps.find(number);
    return qp != nullptr ? &qp->timers : nullptr;
  });
}

Instant Fabric::next_timeout() {
  const auto timer = next_timer();
  return std::min(timer ? timer->at : Instant::max(),
                  connections.next_deadline().value_or(Instant::max()));
}

void Fabric::expire_timers() {
  expiring_ = false;
  last_turn_before_expiry_.reset();
  for (auto entry = next_timer(); entry && entry->at <= now(); entry = next_timer()) {
    QueuePair& qp = *qps.find(entry->qp);
    timers_.expire(*entry, qp.timers);
    completer::on_timer(*this, qp, entry->kind);
  }
  connections.expire_timers();
}

void Fabric::deliver(CqId id, const abi::Cqe& cqe, bool solicits) {
  if (!completions_.deliver(id, cqe, solicits)) overrun(*cqs.find(id));
}

// ibv_poll_cq(3): "CQ overrun ... the async event IBV_EVENT_CQ_ERR will be triggered, and the CQ
// cannot be used". IBTA vol 1, 11.6.3.1 and 10.2.6: the QPs that complete there fail with it.
void Fabric::overrun(CompletionQueue& cq) {
  cq.failed = true;
  device(clients.at(cq.client)).counters.add(Counter::kCqOverruns);
  step_.emit(CqFailed{cq.client, cq.id});
  raise(cq.client, abi::EventType::kCqErr, cq.user_handle);
  overrun_cqs_.push_back(cq.id);
}

void Fabric::fail_users_of_overrun_cqs() {
  while (!overrun_cqs_.empty()) {
    const CqId failed = overrun_cqs_.back();
    overrun_cqs_.pop_back();
    const CompletionQueue* cq = cqs.find(failed);
    if (cq == nullptr) continue;
    std::vector<QpNumber> users;
    for (const QueuePair* qp = cq->senders; qp != nullptr; qp = qp->of_send_cq.next) {
      users.push_back(qp->number);
    }
    for (const QueuePair* qp = cq->receivers; qp != nullptr; qp = qp->of_recv_cq.next) {
      users.push_back(qp->number);
    }
    std::ranges::sort(users);
    for (const QpNumber number : users) {
      QueuePair& qp = *qps.find(number);
      if (qp.state == abi::QpState::kReset || qp.state == abi::QpState::kErr) continue;
      raise(qp, abi::EventType::kQpFatal);
      enter_error(qp);
    }
    // Of an XRC SRQ it is the SRQ that fails: its QPs are not bound to one CQ.
    std::vector<SrqId> failed_srqs;
    for (const SharedReceiveQueue* srq = cq->srqs; srq != nullptr; srq = srq->of_cq.next) {
      failed_srqs.push_back(srq->id);
    }
    std::ranges::sort(failed_srqs);
    for (const SrqId id : failed_srqs) {
      SharedReceiveQueue& srq = *srqs.find(id);
      srq.failed = true;
      raise(srq.client, abi::EventType::kSrqErr, srq.user_handle);
    }
  }
}

void Fabric::deliver_event(ClientId client, abi::EventType type, uint64_t element) {
  step_.emit(AsyncEvent{client, type, element});
}

void Fabric::raise(const QueuePair& qp, abi::EventType type) {
  raise(qp.client, type, qp.user_handle, &qp);
  for (const QueuePair::Reference& other : qp.further_references) {
    raise(other.client, type, other.user_handle, &qp);
  }
}

void Fabric::violation(ClientId client, const char* reason) {
  step_.emit(ClientViolation{client, reason});
}

void Fabric::send(QueuePair& qp, wire::Packet& packet, size_t payload_size, Frame frame) {
  const Path& path = qp.path;
  packet.src_mac = path.src_mac;
  packet.dst_mac = path.dst_mac;
  packet.src_ip = path.src_ip;
  packet.dst_ip = path.dst_ip;
  packet.udp_src_port = path.udp_src_port;
  packet.traffic_class = path.traffic_class;
  packet.hop_limit = path.hop_limit;
  packet.flow_label = path.flow_label;
  packet.bth.dest_qpn = path.peer.value;
  send(qp.device, path.inside, packet, payload_size, std::move(frame), &qp);
}

void Fabric::send(DeviceIndex from, std::optional<DeviceIndex> inside, const wire::Packet& packet,
                  size_t payload_size, Frame frame) {
  send(from, inside, packet, payload_size, std::move(frame), nullptr);
}

void Fabric::send(DeviceIndex from, std::optional<DeviceIndex> inside, const wire::Packet& packet,
                  size_t payload_size, Frame frame, const QueuePair* qp) {
  const bool disturbed = faults.watches_frames();
  // A pair of addresses of two kinds makes a frame that says something else (wire/packet.cc).
  if (inside && !disturbed && packet.src_ip.is_v4() == packet.dst_ip.is_v4()) {
    frame.set_packet(packet, payload_size);
  } else {
    frame.set_size(wire::emit_headers(packet, payload_size, frame.storage()));
  }
  if (config_.trace_frames || !inside || disturbed) wire::write_icrc(frame.bytes());

  Counters& counters = device(from).counters;
  if (!device(from).port_is_up()) return counters.add(Counter::kDroppedPortDown);
  counters.add(Counter::kFramesOut);
  counters.add(Counter::kBytesOut, frame.size());
  const auto go = [&](std::optional<DeviceIndex> to, Frame copy, bool traced) {
    faults::Departure departure{.from = from, .to = to, .frame = std::move(copy), .traced = traced};
    if (disturbed) return faults.frames.apply(std::move(departure), qp);
    launch(std::move(departure));
  };
  bool traced = false;
  if (!inside && is_multicast(packet.dst_ip)) {
    // The group may have members outside as well.
    multicast.for_each_device(packet.dst_ip, [&](DeviceIndex member) {
      go(member, frame, traced);
      traced = true;
    });
    for (uint32_t i = 0; i < devices_.size(); ++i) {
      if (config_.shard.has({i}, QpNumber{packet.bth.dest_qpn})) continue;
      go(DeviceIndex{i}, frame, traced);
      traced = true;
    }
  }
  go(inside, std::move(frame), traced);
}

void Fabric::launch(faults::Departure departure) {
  trace(departure);
  if (config_.shard.of != Shard::Of::kAll && forward(departure)) return;
  if (departure.to) {
    link_.push({now() + config_.link_latency, *departure.to, std::move(departure.frame),
                departure.check_icrc, !departure.from});
  } else if (departure.from) {
    step_.emit(TransmitFrame{*departure.from, std::move(departure.frame)});
  }
}

void Fabric::trace(const faults::Departure& departure) {
  if (!config_.trace_frames || departure.traced) return;
  step_.emit(FrameTrace{now(), departure.frame});
}

void Fabric::schedule(QueuePair& qp) {
  if (qp.scheduled) return;
  qp.scheduled = true;
  schedule_.push_back(qp.number);
  ++turns_scheduled_;
}

void Fabric::wait_for_memory(QueuePair& qp) {
  if (std::ranges::find(waiting_for_memory_, qp.number) == waiting_for_memory_.end()) {
    waiting_for_memory_.push_back(qp.number);
  }
}

void Fabric::go_on_with_memory() {
  for (const QpNumber number : std::exchange(waiting_for_memory_, {})) {
    QueuePair* qp = qps.find(number);
    if (qp == nullptr) continue;
    completer::on_memory_ready(*this, *qp);
    schedule(*qp);
  }
}

void Fabric::enter_error(QueuePair& qp) {
  response_queue::settle(*this, qp);
  qp.state = abi::QpState::kErr;
  for (Timer& timer : qp.timers) timer.deadline.reset();
  send_queue::flush(*this, qp);
  receive_queue::flush(*this, qp);
  // IBTA vol 1, 11.6.3.2: no more WQEs of the SRQ will complete for this QP. An XRC target QP takes
  // from many SRQs, and all processes that hold it may wait for this.
  if (qp.srq || qp.xrcd) raise(qp, abi::EventType::kQpLastWqeReached);
}

// ibv_get_async_event(3): IBV_EVENT_PORT_ACTIVE and IBV_EVENT_PORT_ERR name the port.
void Fabric::set_port(DeviceIndex index, bool up) {
  if (device(index).port_is_up() == up || device(index).removed) return;
  device(index).port_state = up ? abi::PortState::kActive : abi::PortState::kDown;
  for (const auto& [client, of] : clients) {
    if (of == index) raise(client, up ? abi::EventType::kPortActive : abi::EventType::kPortErr, 1);
  }
}

void Fabric::group_changed(DeviceIndex index, const wire::IpAddress& group, bool member) {
  if (device(index).config.outside) step_.emit(GroupChange{index, group, member});
}

std::optional<DeviceIndex> Fabric::device_with_address(const wire::IpAddress& address) const {
  for (uint32_t i = 0; i < devices_.size(); ++i) {
    for (const wire::IpAddress& own : devices_[i].config.addresses) {
      if (own == address) return DeviceIndex{i};
    }
  }
  return std::nullopt;
}

QueuePair* Fabric::qp_of(ClientId client, QpNumber number) {
  QueuePair* qp = qps.find(number);
  return qp != nullptr && qp->is_referenced_by(client) ? qp : nullptr;
}

CompletionQueue* Fabric::cq_of(ClientId client, CqId id) {
  CompletionQueue* cq = cqs.find(id);
  return cq != nullptr && cq->client == client ? cq : nullptr;
}

void Fabric::attach(const AttachClient& input) {
  clients[input.client] = input.device;
  if (!input.shares_with) return;
  const ClientId group = group_of(*input.shares_with);
  groups_[group] = groups_[input.client] = group;
}

ClientId Fabric::group_of(ClientId client) const {
  const auto found = groups_.find(client);
  return found != groups_.end() ? found->second : client;
}

/// Another client that shares the objects of this one.
std::optional<ClientId> Fabric::heir_of(ClientId client) const {
  for (const auto& [other, device] : clients) {
    if (other != client && share_objects(other, client)) return other;
  }
  return std::nullopt;
}

SharedReceiveQueue* Fabric::srq_of(ClientId client, SrqId id) {
  SharedReceiveQueue* srq = srqs.find(id);
  return srq != nullptr && srq->client == client ? srq : nullptr;
}

void Fabric::release_qp(QueuePair& qp, ClientId client, uint64_t user_handle) {
  if (qp.xrcd) --xrcds.find(*qp.xrcd)->openers.at(client).objects;
  auto& further = qp.further_references;
  const auto named = std::ranges::find_if(further, [&](const QueuePair::Reference& it) {
    return it.client == client && it.user_handle == user_handle;
  });
  if (named != further.end()) {
    further.erase(named);
  } else if (qp.client != client) {
    further.erase(std::ranges::find(further, client, &QueuePair::Reference::client));
  } else if (further.empty()) {
    destroy_qp(qp);
  } else {
    qps.give(qp, further.front().client);
    qp.user_handle = further.front().user_handle;
    further.erase(further.begin());
  }
}

void Fabric::destroy_qp(QueuePair& qp) {
  response_queue::settle(*this, qp);
  mrs.unbind_windows_of(qp.number);
  receive_queue::give_back(*this, qp);
  if (qp.multicast_groups != 0) {
    for (const wire::IpAddress& left : multicast.remove(qp.device, qp.number)) {
      group_changed(qp.device, left, false);
    }
  }
  if (!qp.xrcd) {
    if (qp.srq) --srqs.find(*qp.srq)->users;
    CompletionQueue& send_cq = *cqs.find(qp.send_cq);
    leave<&QueuePair::of_send_cq>(send_cq.senders, qp);
    --send_cq.users;
    if (qp.type != abi::QpType::kXrcSend) {
      CompletionQueue& recv_cq = *cqs.find(qp.recv_cq);
      leave<&QueuePair::of_recv_cq>(recv_cq.receivers, qp);
      --recv_cq.users;
    }
    --pds.find(qp.pd)->users;
  }
  qps.destroy(qp.number);
}

void Fabric::destroy_mr(MemoryRegion& mr) {
  --pds.find(mr.pd)->users;
  mrs.destroy(mr.id);
}

void Fabric::destroy_mw(MemoryWindow& mw) {
  --pds.find(mw.pd)->users;
  mrs.destroy_window(mw.id);
}

void Fabric::free_dm(DeviceMemory& dm) {
  device(clients.at(dm.client)).device_memory_used -= dm.length;
  dms.destroy(dm.id);
}

void Fabric::destroy_srq(SharedReceiveQueue& srq) {
  if (srq.xrcd) {
    --xrcds.find(*srq.xrcd)->openers.at(srq.client).objects;
    CompletionQueue& cq = *cqs.find(srq.cq);
    leave<&SharedReceiveQueue::of_cq>(cq.srqs, srq);
    --cq.users;
  }
  --pds.find(srq.pd)->users;
  srqs.destroy(srq.id);
}

}  // namespace rocemu::engine
