#include "emulator/engine/adversarial/adversary.h"

#include <algorithm>

#include "emulator/abi/undefined_fields.h"
#include "emulator/engine/adversarial/undefined.h"

namespace rocemu::engine::adversarial {

namespace {

TornRead::Burst burst_of(const QueuePair& qp, const Response& response) {
  return {.qp = qp.number,
          .generation = qp.generation,
          .psn = response.psn.value(),
          .address = response.address};
}

}  // namespace

using Kind = PlacedMemory::Kind;
using wire::Operation;

std::unique_ptr<Adversary> Adversary::make(const FabricConfig& config, HostMemory& memory,
                                           Objects& objects, Step& step) {
  if (config.adversarial == 0) return nullptr;
  return std::make_unique<Adversary>(config, memory, objects, step);
}

Adversary::Adversary(const FabricConfig& config, HostMemory& memory, Objects& objects, Step& step)
    : classes_(config.adversarial),
      objects_(objects),
      step_(step),
      choices_(config, step),
      memory_(classes_, config.seed, memory, step, choices_),
      late_read_(config.seed, choices_.late_read),
      torn_read_(config.seed, choices_.placement),
      order_(config.seed),
      early_(~config.seed, Class::kPlacement) {}

void Adversary::release_due(CompletionDelivery& completions, EventDelivery& events) {
  const Instant now = step_.now();
  memory_.pending().place_due(now);
  deliver(order_.take_completions(now), completions);
  deliver(order_.take_events(now), completions, events);
}

void Adversary::deliver(const std::vector<HeldCompletion>& held, CompletionDelivery& completions) {
  for (const HeldCompletion& one : held) completions.deliver_now(one.cq, one.cqe, one.solicits);
}

void Adversary::deliver(const std::vector<HeldEvent>& held, CompletionDelivery& completions,
                        EventDelivery& events) {
  for (const HeldEvent& one : held) {
    if (one.cq) {
      completions.notify_now(*one.cq);
    } else {
      events.raise_now(one.client, one.type, one.element);
    }
  }
}

void Adversary::wake_at(QpNumber qp, Instant at) {
  wakes_.emplace(at, qp);
}

std::vector<QpNumber> Adversary::take_woken() {
  std::vector<QpNumber> woken;
  while (!wakes_.empty() && wakes_.begin()->first <= step_.now()) {
    woken.push_back(wakes_.begin()->second);
    wakes_.erase(wakes_.begin());
  }
  return woken;
}

std::optional<Instant> Adversary::next_deadline() const {
  std::optional<Instant> first = memory_.pending().next_due();
  if (const auto held = order_.next_due(); held && (!first || *held < *first)) first = held;
  if (!wakes_.empty() && (!first || wakes_.begin()->first < *first)) first = wakes_.begin()->first;
  return first;
}

bool Adversary::is_idle() const {
  return memory_.pending().empty() && order_.empty() && wakes_.empty();
}

/// Sets the message to which the packet's writes belong. An atomic, a READ, a FLUSH or an ATOMIC
/// WRITE makes the earlier bytes of the same QP visible (IBTA vol 1, 9.5), so this function writes
/// the pending ones. hold() does this for SENDs and WRITEs with immediate data, when they complete
/// a receive.
void Adversary::begin_packet(const QueuePair& qp, const wire::OpcodeInfo& info) {
  PlacedMemory::Incoming incoming{.stream = {qp.number, info.is_response},
                                  .qp_client = qp.client,
                                  .kind = Kind::kThrough,
                                  .begins_message = info.is_first};
  switch (info.operation) {
    case Operation::kWrite:
      incoming.kind = Kind::kWrite;
      break;
    case Operation::kSend:
    case Operation::kReadResponse:
    case Operation::kAtomicAck:
      incoming.kind = Kind::kBuffer;
      break;
    case Operation::kCompareSwap:
    case Operation::kFetchAdd:
      memory_.pending().place_stream(incoming.stream);
      incoming.kind = Kind::kAtomic;
      break;
    case Operation::kReadRequest:
    case Operation::kFlush:
    case Operation::kAtomicWrite:
      memory_.pending().place_stream(incoming.stream);
      break;
    case Operation::kAck:
    case Operation::kCongestionNotification:
      break;
  }
  memory_.begin(incoming);
}

void Adversary::deliver_delayed(ClientId client, CompletionDelivery& completions,
                                EventDelivery& events) {
  memory_.pending().place_client(client);
  deliver(order_.take_completions(step_.now(), client), completions);
  deliver(order_.take_events(step_.now(), client), completions, events);
}

void Adversary::drop(ClientId client) {
  memory_.pending().drop(client);
  memory_.pending().place_client(client);  // bytes that its QPs wrote to memory of others
  order_.drop(client);
}

bool Adversary::may_read(const QueuePair& qp, uint32_t wqe, uint32_t packet) {
  if (!classes_.has(Class::kLateRead)) return true;
  const Instant at = late_read_.earliest(qp.number, wqe, packet, step_.now());
  if (at <= step_.now()) return true;
  wake_at(qp.number, at);
  return false;
}

bool Adversary::takes_response(const QueuePair& qp, const Response& response,
                               std::span<const std::span<uint8_t>> data) {
  if (!classes_.has(Class::kPlacement)) return true;
  const Instant at = torn_read_.take(burst_of(qp, response), data, step_.now());
  if (at <= step_.now()) return true;
  wake_at(qp.number, at);
  return false;
}

bool Adversary::awaits_response(const QueuePair& qp, const Response& response) const {
  return torn_read_.again_at(burst_of(qp, response), step_.now()) > step_.now();
}

Instant Adversary::hold_acknowledgement(const QueuePair& qp) {
  if (!classes_.has(Class::kOrder)) return {};
  Duration late = order_.acknowledgement_delay(qp);
  const bool is_made = late == Duration(0) || choices_.order.make([&] {
    return "an acknowledgement of QP " + std::to_string(qp.number.value) + " is sent " +
           in_words(late) + " late";
  });
  if (!is_made) late = Duration(0);
  const Instant until = step_.now() + late;
  if (until > step_.now()) wake_at(qp.number, until);
  return until;
}

void Adversary::spoil(PdId pd, const SgeList& buffer, uint64_t length) {
  if (!classes_.has(Class::kUndefined)) return;
  memory_.end();  // not part of the present packet
  spoil_buffer(memory_, objects_.mrs, pd, buffer, length);
}

uint8_t Adversary::undefined_byte() const {
  return classes_.has(Class::kUndefined) ? kUndefinedByte : 0;
}

void Adversary::shape(abi::Cqe& cqe) {
  if (!classes_.has(Class::kUndefined)) return;
  abi::spoil_undefined_fields(cqe);
  const QueuePair* qp = objects_.qps.find(QpNumber{cqe.qp_num});
  if (qp != nullptr) abi::spoil_inapplicable_fields(cqe, qp->type == abi::QpType::kUd);
}

template <class Describe>
Duration Adversary::delay(Describe describe) {
  const Duration drawn = order_.delay();
  if (drawn == Duration(0)) return drawn;
  const bool is_made =
      choices_.order.make([&] { return describe() + " comes " + in_words(drawn) + " late"; });
  return is_made ? drawn : Duration(0);
}

/// Returns whether the completion is held back. A completion makes visible the bytes that its queue
/// received earlier (IBTA vol 1, 9.5): either it waits for these bytes, or they are written now.
bool Adversary::hold(const CompletionQueue& cq, const abi::Cqe& cqe, bool solicits) {
  const Instant now = step_.now();
  const Stream stream{QpNumber{cqe.qp_num}, cqe.queue == abi::WorkQueue::kSend};
  Instant until = now;
  const Instant end = memory_.pending().end_of(stream, now);
  if (end > now) {
    if (early_.one_in(4)) {
      memory_.pending().place_stream(stream);
    } else {
      until = end;
    }
  }
  if (classes_.has(Class::kOrder)) {
    until += delay([&] {
      return "the completion of wr_id " + std::to_string(cqe.wr_id) + " on QP " +
             std::to_string(cqe.qp_num);
    });
  }
  if (until <= now && !order_.holds_queue(cqe)) return false;
  order_.keep(HeldCompletion{
      .client = cq.client, .cq = cq.id, .cqe = cqe, .solicits = solicits, .until = until});
  return true;
}

bool Adversary::hold_event(const CompletionQueue& cq) {
  if (!classes_.has(Class::kOrder)) return false;
  const Duration late = delay([&] { return "an event of CQ " + std::to_string(cq.id.value); });
  order_.keep(HeldEvent{
      .client = cq.client, .cq = cq.id, .type = {}, .element = 0, .until = step_.now() + late});
  return true;
}

bool Adversary::hold_event(ClientId client, abi::EventType type, uint64_t element) {
  // IBV_EVENT_DEVICE_FATAL is never delayed, because the device is removed together with it.
  if (!classes_.has(Class::kOrder) || type == abi::EventType::kDeviceFatal) return false;
  const Duration late = delay([] { return std::string("an asynchronous event"); });
  order_.keep(HeldEvent{
      .client = client, .cq = {}, .type = type, .element = element, .until = step_.now() + late});
  return true;
}

}  // namespace rocemu::engine::adversarial
