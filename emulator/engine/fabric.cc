#include "emulator/engine/fabric.h"

#include "emulator/engine/requester.h"
#include "emulator/engine/responder.h"

namespace rocemu::engine {
namespace {

/// Frames that one step moves at most, so that the caller soon looks at its other work.
constexpr uint32_t kFramesPerStep = 256;

}  // namespace

Fabric::Fabric(FabricConfig config, HostMemory& memory)
    : mrs(config.seed), config_(std::move(config)), host_memory_(memory) {
  for (const DeviceConfig& device : config_.devices) devices_.emplace_back(device);
}

void Fabric::begin_step(Instant now, Outputs& outputs) {
  now_ = now;
  outputs_ = &outputs;
  expire_timers();
}

void Fabric::run() {
  fail_users_of_overrun_cqs();
  for (uint32_t moved = 0; moved < kFramesPerStep;) {
    if (!link_.empty()) {
      const InFlight in_flight = std::move(link_.front());
      link_.pop_front();
      arrive(in_flight.to, in_flight.frame.bytes());
      ++moved;
    } else if (!schedule_.empty()) {
      QueuePair* qp = qps.find(schedule_.front());
      schedule_.pop_front();
      if (qp != nullptr && qp->scheduled) {
        qp->scheduled = false;
        moved += responder::transmit(*this, *qp);
        moved += requester::transmit(*this, *qp);
      }
    } else {
      break;
    }
    fail_users_of_overrun_cqs();
  }
}

std::optional<Instant> Fabric::next_deadline() {
  if (!link_.empty() || !schedule_.empty()) return now_;
  const auto entry = timers_.next([this](QpNumber number) {
    QueuePair* qp = qps.find(number);
    return qp != nullptr ? &qp->timers : nullptr;
  });
  return entry ? std::optional(entry->at) : std::nullopt;
}

void Fabric::expire_timers() {
  const auto timers_of = [this](QpNumber number) {
    QueuePair* qp = qps.find(number);
    return qp != nullptr ? &qp->timers : nullptr;
  };
  for (auto entry = timers_.next(timers_of); entry && entry->at <= now_;
       entry = timers_.next(timers_of)) {
    QueuePair& qp = *qps.find(entry->qp);
    timers_.expire(*entry, qp.timers);
    requester::on_timer(*this, qp, entry->kind);
  }
}

void Fabric::complete(CqId id, const abi::Cqe& cqe, bool solicits) {
  CompletionQueue* cq = cqs.find(id);
  if (cq == nullptr || cq->failed) return;
  if (cq->full()) {
    // What the client has taken meanwhile is asked for at the last moment, and only then.
    if (!cq->consume(host_memory_.completions_taken(cq->client, id))) {
      return violation(cq->client, "took more completions than there were");
    }
    if (cq->full()) return overrun(*cq);
  }
  abi::Cqe stamped = cqe;
  stamped.timestamp_ns = nanoseconds_since_start(now_);
  outputs_->list.emplace_back(Completion{cq->client, id, stamped});
  if (cq->add(solicits) && cq->channel.value != 0) {
    outputs_->list.emplace_back(CompletionEvent{cq->client, id, cq->channel, cq->user_handle});
  }
}

// ibv_poll_cq(3): "CQ overrun ... the async event IBV_EVENT_CQ_ERR will be triggered, and the CQ
// cannot be used". IBTA vol 1, 11.6.3.1 and 10.2.6: the QPs that complete there fail with it.
void Fabric::overrun(CompletionQueue& cq) {
  cq.failed = true;
  device(clients.at(cq.client)).counters.add(Counter::kCqOverruns);
  outputs_->list.emplace_back(CqFailed{cq.client, cq.id});
  raise(cq.client, abi::EventType::kCqErr, cq.user_handle);
  overrun_cqs_.push_back(cq.id);
}

void Fabric::fail_users_of_overrun_cqs() {
  while (!overrun_cqs_.empty()) {
    const CqId failed = overrun_cqs_.back();
    overrun_cqs_.pop_back();
    qps.for_each([&](QueuePair& qp) {
      if (qp.send_cq != failed && qp.recv_cq != failed) return;
      if (qp.state == abi::QpState::kReset || qp.state == abi::QpState::kErr) return;
      raise(qp.client, abi::EventType::kQpFatal, qp.user_handle);
      enter_error(qp);
    });
  }
}

void Fabric::raise(ClientId client, abi::EventType type, uint64_t element) {
  outputs_->list.emplace_back(AsyncEvent{client, type, element});
}

void Fabric::violation(ClientId client, const char* reason) {
  outputs_->list.emplace_back(ClientViolation{client, reason});
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
  packet.bth.dest_qpn = qp.attr.dest_qp_num;
  const size_t size = wire::emit_headers(packet, payload_size, frame.storage());
  frame.set_size(size);
  if (config_.trace_frames || !path.inside) wire::write_icrc(frame.bytes());

  Device& device = device_of(qp);
  device.counters.add(Counter::kFramesOut);
  device.counters.add(Counter::kBytesOut, size);
  if (config_.trace_frames) outputs_->list.emplace_back(FrameTrace{now_, frame});
  if (path.inside) {
    link_.push_back({*path.inside, std::move(frame)});
  } else {
    outputs_->list.emplace_back(TransmitFrame{qp.device, std::move(frame)});
  }
}

void Fabric::schedule(QueuePair& qp) {
  if (qp.scheduled) return;
  qp.scheduled = true;
  schedule_.push_back(qp.number);
}

void Fabric::enter_error(QueuePair& qp) {
  qp.state = abi::QpState::kErr;
  for (Timer& timer : qp.timers) timer.deadline.reset();
  requester::flush(*this, qp);
  responder::flush(*this, qp);
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
  return qp != nullptr && qp->client == client ? qp : nullptr;
}

CompletionQueue* Fabric::cq_of(ClientId client, CqId id) {
  CompletionQueue* cq = cqs.find(id);
  return cq != nullptr && cq->client == client ? cq : nullptr;
}

void Fabric::destroy_qp(QueuePair& qp) {
  --cqs.find(qp.send_cq)->users;
  --cqs.find(qp.recv_cq)->users;
  --pds.find(qp.pd)->users;
  qps.destroy(qp.number);
}

void Fabric::detach(ClientId client) {
  // Users before what they use.
  qps.for_each([&](QueuePair& qp) {
    if (qp.client == client) destroy_qp(qp);
  });
  cqs.for_each([&](CompletionQueue& cq) {
    if (cq.client == client) cqs.destroy(cq.id);
  });
  mrs.for_each([&](MemoryRegion& mr) {
    if (mr.client == client) mrs.destroy(mr.id);
  });
  ahs.for_each([&](AddressHandle& ah) {
    if (ah.client == client) ahs.destroy(ah.id);
  });
  pds.for_each([&](ProtectionDomain& pd) {
    if (pd.client == client) pds.destroy(pd.id);
  });
  clients.erase(client);
}

}  // namespace rocemu::engine
