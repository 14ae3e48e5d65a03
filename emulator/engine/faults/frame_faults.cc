#include "emulator/engine/faults/frame_faults.h"

#include <algorithm>
#include <array>

#include "emulator/engine/faults/fault_injector.h"
#include "emulator/engine/faults/frame_mutation.h"
#include "wire/cm/cm_messages.h"
#include "wire/cm/mad.h"
#include "wire/print.h"

namespace rocemu::engine::faults {
namespace {

/// The longest time that a frame waits until other frames have overtaken it.
constexpr Duration kMaxHold = std::chrono::milliseconds(10);

/// Returns the kind of an acknowledgement. A READ response also has an AETH that acknowledges, but
/// does not count as an acknowledgement.
Answer answer_in(const wire::Packet& packet, const wire::OpcodeInfo* info) {
  if (info == nullptr || info->operation != wire::Operation::kAck) return Answer::kNone;
  switch (wire::aeth_kind(packet.aeth.syndrome)) {
    case wire::AethKind::kAck:
      return Answer::kAck;
    case wire::AethKind::kRnrNak:
      return Answer::kRnrNak;
    case wire::AethKind::kNak:
    case wire::AethKind::kReserved:
      break;
  }
  return Answer::kNak;
}

bool is_mad(const wire::Packet& packet) {
  return packet.bth.dest_qpn == wire::kGsiQpn && packet.payload.size() == wire::kMadSize;
}

/// Returns the low byte of the attribute ID if the packet is a MAD of the connection manager;
/// nothing otherwise.
std::optional<uint8_t> cm_message_in(const wire::Packet& packet) {
  if (!is_mad(packet)) return std::nullopt;
  const auto header = wire::parse_mad_header(packet.payload.first<wire::MadHeader::kSize>());
  if (header.mgmt_class != wire::kMadClassCm) return std::nullopt;
  return static_cast<uint8_t>(header.attribute_id);
}

/// Describes the frame from the point of view of the QP of this fabric that sends it (`outgoing`)
/// or will receive it.
Occurrence describe(const Departure& departure, const wire::Packet& packet, const QueuePair* qp,
                    bool outgoing) {
  const wire::OpcodeInfo* info = wire::find_opcode(packet.bth.opcode);
  Occurrence occurrence{.where = Where::kFrame,
                        .flow = {},
                        .device = departure.from,
                        .to = departure.to,
                        .kind = static_cast<uint8_t>(packet.bth.opcode),
                        .answer = answer_in(packet, info),
                        .mad = packet.bth.dest_qpn == wire::kGsiQpn,
                        .dest_qp = packet.bth.dest_qpn,
                        .psn = packet.bth.psn.value(),
                        .psn_num = packet.bth.psn.value(),
                        .size = packet.payload.size()};
  const uint32_t here = (outgoing ? departure.from : departure.to).value_or(DeviceIndex{}).value;
  if (occurrence.mad) occurrence.qp_num = packet.deth.src_qpn;
  if (qp == nullptr) {
    const uint32_t there = outgoing && departure.to ? departure.to->value + 1 : 0;
    occurrence.flow = {outgoing ? Flow::Kind::kDevice : Flow::Kind::kFromOutside, here, there};
    return occurrence;
  }
  const bool is_response = info != nullptr && info->is_response;
  const uint32_t start = is_response == outgoing ? qp->attr.rq_psn : qp->attr.sq_psn;
  occurrence.flow = {outgoing ? Flow::Kind::kQp : Flow::Kind::kFromOutside, here, qp->order};
  occurrence.qp = qp->order;
  occurrence.qp_num = qp->number.value;
  occurrence.psn = (packet.bth.psn - start).value();
  if (outgoing) occurrence.message = is_response ? qp->recv.msn : qp->send.next + 1;
  return occurrence;
}

struct Plan {
  std::vector<RuleMatcher::Acting> acting;
  bool drop = false;
  uint32_t duplicate = 0;
  uint32_t reorder = 0;
  Duration delay{};
  Duration link_delay{};  // the part of the delay due to rules for the link
  std::vector<const Rejection*> rejections = {};
};

/// Returns how long the frame takes on a link of that speed, including the wait for earlier frames.
Duration time_on_link(const Frame& frame, uint64_t bits_per_second, Instant now,
                      Instant& link_free_at) {
  // Ethernet's preamble, FCS and gap take 24 bytes in addition to the frame.
  const uint64_t bits = 8 * (frame.bytes().size() + 24);
  link_free_at = std::max(link_free_at, now) + Duration(bits * 1'000'000'000 / bits_per_second);
  return link_free_at - now;
}

void mark(FrameFault& fault, bool holds, FrameChange change) {
  if (holds) fault.changes |= static_cast<uint32_t>(change);
}

}  // namespace

FrameFaults::FrameFaults(FaultInjector& injector, FramePool& pool, Switch& network, Step& step)
    : injector_(injector), rules_(injector.rules), pool_(pool), switch_(network), step_(step) {}

void FrameFaults::apply(Departure departure, const QueuePair* qp) {
  const auto parsed = wire::parse_frame(departure.frame.bytes());
  if (!parsed) return switch_.forward(std::move(departure));  // the receiver counts it
  const bool outgoing = departure.from.has_value();
  wire::Packet packet = *parsed;
  Occurrence occurrence = describe(departure, packet, qp, outgoing);

  // The original frame is kept, because injected frames are derived from it and `parsed` refers to
  // its bytes.
  const Frame original = departure.frame;
  Plan plan{.acting = {}};
  const auto ask = [&](Where where) {
    if (!injector_.watches(where)) return;
    occurrence.where = where;
    const auto& acting = injector_.act(occurrence);
    plan.acting.insert(plan.acting.end(), acting.begin(), acting.end());
  };
  ask(Where::kFrame);
  if (const auto message = cm_message_in(packet)) {
    const uint8_t opcode = std::exchange(occurrence.kind, *message);
    ask(Where::kCm);
    occurrence.kind = opcode;
  }
  ask(Where::kLink);

  const std::string text = plan.acting.empty() ? "" : wire::to_string(packet);
  for (const RuleMatcher::Acting& acting : plan.acting) {
    const auto& [rule, random, link_free_at, owner] = acting;
    const Effects& effects = rule->effects;
    FrameFault fault{.number = departure.marks.number};
    if (!effects.rewrite.empty()) {
      change(packet, effects.rewrite);
      if (Frame changed = frame_of(pool_, packet)) {
        mark(fault, !std::ranges::equal(changed.bytes(), departure.frame.bytes()),
             FrameChange::kRewritten);
        departure.frame = std::move(changed);
        packet = *wire::parse_frame(departure.frame.bytes());
      }
    }
    if (effects.corrupt) {
      departure.frame = corrupted(pool_, departure.frame, *effects.corrupt, *random);
      departure.check_icrc = true;
      mark(fault, true, FrameChange::kCorrupted);
    }
    const bool lost =
        effects.drop || effects.reject || (effects.loss > 0 && happens(*random, effects.loss));
    fault.delay = effects.delay + effects.latency + chosen(*random, effects.jitter);
    if (effects.bits_per_second != 0) {
      fault.delay +=
          time_on_link(departure.frame, effects.bits_per_second, step_.now(), *link_free_at);
    }
    mark(fault, lost, effects.reject ? FrameChange::kRejected : FrameChange::kDropped);
    mark(fault, fault.delay.count() != 0, FrameChange::kDelayed);
    mark(fault, effects.duplicate != 0, FrameChange::kDuplicated);
    mark(fault, effects.reorder != 0, FrameChange::kReordered);
    mark(fault, !effects.inject.empty(), FrameChange::kInjected);
    // A rule for the link acts on every frame, so its action is reported only if the frame is lost.
    if (rule->where != Where::kLink || lost) {
      injector_.note(acting, text, occurrence.device ? occurrence.device : occurrence.to, qp,
                     {.frame = fault});
    }
    for (const MadeUpFrame& made_up : effects.inject) inject(made_up, departure, *parsed, qp);
    if (effects.reject) plan.rejections.push_back(&*effects.reject);
    plan.drop |= lost;
    plan.duplicate += effects.duplicate;
    plan.reorder = std::max(plan.reorder, effects.reorder);
    plan.delay += fault.delay;
    if (rule->where == Where::kLink) plan.link_delay += fault.delay;
  }

  departure.marks.lost = plan.drop;
  if (!plan.drop) departure.marks.link_delay = plan.link_delay;
  if (!outgoing) {  // the frame was on the wire already, once and unchanged
    Departure arrived = departure;
    arrived.frame = original;
    switch_.trace(arrived);
    departure.traced = true;
  } else if (plan.drop) {
    switch_.trace(departure);
  }
  for (const Rejection* rejection : plan.rejections) {
    reject_in_place_of_peer(*rejection, departure, *parsed);
  }
  for (uint32_t i = 0; i <= plan.duplicate && !plan.drop; ++i) {
    departure.marks.copy = i;
    if (i != 0) departure.marks.resend = {};  // the sender sent the frame only once
    if (plan.reorder != 0) {
      delayed_.hold(occurrence.flow, plan.reorder, plan.delay + kMaxHold, step_.now(), departure);
    } else if (plan.delay.count() != 0) {
      delayed_.delay(plan.delay, step_.now(), departure);
    } else {
      switch_.forward(Departure(departure));
    }
  }
  if (plan.reorder == 0) {
    delayed_.pass(occurrence.flow, step_.now());
    release_due();
  }
}

void FrameFaults::release_due() {
  while (auto departure = delayed_.take_due(step_.now())) switch_.forward(std::move(*departure));
}

void FrameFaults::forward_made_up(Departure made_up, const Departure& with) {
  made_up.marks = {.number = next_number(), .made_up_with = with.marks.number};
  switch_.forward(std::move(made_up));
}

void FrameFaults::inject(const MadeUpFrame& made_up, const Departure& with,
                         const wire::Packet& packet, const QueuePair* qp) {
  wire::Packet other = packet;
  const std::vector<uint8_t> payload(made_up.payload);
  other.payload = payload;
  Departure departure{.from = with.from, .to = with.to, .frame = {}, .check_icrc = with.check_icrc};
  if (made_up.to_sender) {
    std::swap(other.src_mac, other.dst_mac);
    std::swap(other.src_ip, other.dst_ip);
    std::swap(departure.from, departure.to);
    if (qp != nullptr) {
      other.bth.dest_qpn = with.from ? qp->number.value : qp->attr.dest_qp_num;
    }
  }
  change(other, made_up.changes);
  departure.frame = frame_of(pool_, other);
  if (departure.frame) forward_made_up(std::move(departure), with);
}

// Sends the REJ that the peer would send if it saw the message (IBTA vol 1, 12.6.7).
void FrameFaults::reject_in_place_of_peer(const Rejection& rejection, const Departure& with,
                                          const wire::Packet& packet) {
  const auto mad = wire::parse_cm_mad(packet.payload);
  if (!mad) return;
  wire::CmRej rej;
  rej.reason = rejection.reason;
  if (const auto* req = std::get_if<wire::CmReq>(&mad->message)) {
    rej.remote_comm_id = req->local_comm_id;
    rej.message = wire::CmRejected::kReq;
  } else if (const auto* rep = std::get_if<wire::CmRep>(&mad->message)) {
    rej.local_comm_id = rep->remote_comm_id;
    rej.remote_comm_id = rep->local_comm_id;
    rej.message = wire::CmRejected::kRep;
  } else {
    return;  // other messages cannot be rejected
  }
  const size_t size = std::min(rejection.private_data.size(), rej.private_data.size());
  std::copy_n(rejection.private_data.begin(), size, rej.private_data.begin());
  std::array<uint8_t, wire::kMadSize> bytes;
  wire::emit(wire::CmMad{.transaction_id = mad->transaction_id, .message = rej}, bytes);
  wire::Packet answer = packet;
  std::swap(answer.src_mac, answer.dst_mac);
  std::swap(answer.src_ip, answer.dst_ip);
  answer.payload = bytes;
  forward_made_up({.from = with.to, .to = with.from, .frame = frame_of(pool_, answer)}, with);
}

}  // namespace rocemu::engine::faults
