// Compares the results of the engines with those of the model.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "tests/property/world.h"

namespace rocemu::property {

using abi::EventType;
using abi::WcStatus;

namespace {

std::string describe(uint32_t side, uint32_t connection, const abi::Cqe& cqe) {
  return fmt::format("side {} connection {} {} {:#x}: status {} vendor {}", side, connection,
                     cqe.queue == abi::WorkQueue::kSend ? "wr" : "receive", cqe.wr_id, cqe.status,
                     cqe.vendor_err);
}

}  // namespace

/// Records that the QP that sends, or the QP that receives, is in ERR. These are two QPs only for
/// XRC.
void World::fail_qp(Half& half, bool sender) {
  const bool both = half.kind != Kind::kXrc;
  half.send_failed |= sender || both;
  half.recv_failed |= !sender || both;
}

void World::on_completion(uint32_t side, const abi::Cqe& cqe) {
  ++completions_;
  const bool of_send = cqe.queue == abi::WorkQueue::kSend;
  for (uint32_t c = 0; c < kConnections; ++c) {
    const Half& half = sides_[side].halves[c];
    if ((of_send ? half.send_qpn : half.recv_qpn) != cqe.qp_num) continue;
    return of_send ? on_send_completion(side, c, cqe) : on_receive_completion(side, c, cqe);
  }
  fail("a completion of a QP that is not there");
}

// ---- Sends ----------------------------------------------------------------------------------

void World::on_send_completion(uint32_t side, uint32_t connection, const abi::Cqe& cqe) {
  Half& half = sides_[side].halves[connection];
  const Half& peer = sides_[1 - side].halves[connection];
  // The completion also completes all unsignaled requests before it, which must have succeeded.
  while (!half.sends.empty() && half.sends.front().wr_id != cqe.wr_id) {
    const Message skipped = std::move(half.sends.front());
    half.sends.pop_front();
    if (skipped.signaled || skipped.fate != WcStatus::kSuccess) {
      return fail(fmt::format("no completion of {:#x}", skipped.wr_id));
    }
    on_success(side, connection, skipped);
  }
  if (half.sends.empty()) return fail(fmt::format("a completion of {:#x} again", cqe.wr_id));
  const Message message = std::move(half.sends.front());
  half.sends.pop_front();

  const auto status = static_cast<WcStatus>(cqe.status);
  const auto is_right = [&] {
    switch (status) {
      case WcStatus::kSuccess:
        return message.signaled && message.fate == status;
      case WcStatus::kWrFlushErr:
        return half.send_failed || half.stopped;
      // the peer's QP has failed, so it is silent, or its NAK was lost
      case WcStatus::kRetryExcErr:
        return is_reliable(half.kind) && peer.recv_failed;
      case WcStatus::kRemInvReqErr:
        return message.fate == status || peer.refused == message.wr_id;
      default:
        return message.fate == status;
    }
  };
  if (!is_right()) return fail(describe(side, connection, cqe));
  if (status == WcStatus::kSuccess) return on_success(side, connection, message);
  if (status != WcStatus::kWrFlushErr) {
    if (is_reliable(half.kind)) {
      fail_qp(half, true);
    } else {
      half.stopped = true;  // 10.3.1.6: the send queue stops in SQE
    }
  }
  on_failure(side, connection, message);
}

void World::on_success(uint32_t number, uint32_t connection, const Message& message) {
  Side& side = sides_[number];
  Side& peer = sides_[1 - number];
  const auto wrong = [&](const char* what) {
    fail(fmt::format("side {} wr {:#x}: {}", number, message.wr_id, what));
  };
  if (!std::ranges::equal(side.memory(message.local, message.expected.size()), message.expected)) {
    return wrong("the answer is wrong");
  }
  side.image.set(message.local, message.expected);
  Window& window = side.halves[connection].window;
  if (message.op.act == Act::kBind) window.state = Window::State::kBound;
  if (message.op.act == Act::kLocalInvalidate) {
    window.state = Window::State::kFree;
    window.stale = window.rkey;
  }
  if (!is_reliable(side.halves[connection].kind)) return;
  if (message.remote != 0) {
    if (!std::ranges::equal(peer.memory(message.remote, message.payload.size()), message.payload)) {
      return wrong("the WRITE is not there");
    }
    peer.image.set(message.remote, message.payload);
  }
  const auto& arrivals = peer.halves[connection].arrivals;
  if (!arrivals.empty() && arrivals.front().wr_id <= message.wr_id) {
    wrong("acknowledged, but something that was sent before it has not arrived");
  }
}

void World::on_failure(uint32_t side, uint32_t connection, const Message& message) {
  if (!is_reliable(sides_[side].halves[connection].kind)) return;
  if (message.fate != WcStatus::kSuccess) return;  // the request had no effect at all
  sides_[side].image.leave_open(message.local, message.expected.size());
  if (message.remote == 0) return;
  sides_[1 - side].image.leave_open(message.remote, message.payload.size());
}

// ---- Receives -------------------------------------------------------------------------------

void World::on_receive_completion(uint32_t number, uint32_t connection, const abi::Cqe& cqe) {
  Side& side = sides_[number];
  Half& half = side.halves[connection];
  auto& posted = half.receives->posted;
  const std::string what = describe(number, connection, cqe);
  const auto found = std::ranges::find(posted, cqe.wr_id, &Receive::address);
  if (found == posted.end()) return fail(what + ", which is not posted");
  // The receives before this one are only those that messages for other QPs are filling.
  if (found - posted.begin() >= half.receives->users) return fail(what + ", out of order");
  const Receive receive = *found;
  posted.erase(found);

  const auto status = static_cast<WcStatus>(cqe.status);
  if (status == WcStatus::kWrFlushErr) {
    if (!half.recv_failed) fail(what);
    if (is_reliable(half.kind)) side.image.leave_open(receive.address, receive.length);
    return;
  }
  if (half.recv_failed) return fail(what + ", of a QP in ERR");
  if (is_reliable(half.kind)) {
    if (half.arrivals.empty()) return fail(what + ", but nothing was sent");
    if (status == WcStatus::kSuccess) return on_message(number, connection, receive, cqe);
    if (status != WcStatus::kLocLenErr || half.arrivals.front().payload.size() <= receive.length) {
      return fail(what);
    }
    half.refused = half.arrivals.front().wr_id;
    side.image.leave_open(receive.address, receive.length);
    return fail_qp(half, false);
  }
  if (half.due.empty()) return fail(what + ", but no message is complete");
  const Due due = half.due.front();
  half.due.pop_front();
  if (due.wr_id != cqe.wr_id || status != WcStatus::kSuccess) return fail(what + ", not as due");
  const bool has_imm = (cqe.wc_flags & abi::kWcWithImm) != 0;
  const bool has_grh = (cqe.wc_flags & abi::kWcGrh) != 0;
  if (cqe.byte_len != due.byte_len || has_imm != due.imm.has_value() ||
      (has_imm && cqe.imm_data != *due.imm) || has_grh != (half.kind == Kind::kUd) ||
      cqe.src_qp != sides_[1 - number].halves[connection].send_qpn) {
    fail(what + ", not as due");
  }
}

void World::on_message(uint32_t number, uint32_t connection, const Receive& receive,
                       const abi::Cqe& cqe) {
  Side& side = sides_[number];
  Half& half = side.halves[connection];
  const std::string what = describe(number, connection, cqe);
  const Message message = std::move(half.arrivals.front());
  half.arrivals.pop_front();
  const Act act = message.op.act;
  const uint32_t flags = act == Act::kSendInvalidate                     ? abi::kWcWithInv
                         : act == Act::kSendImm || act == Act::kWriteImm ? abi::kWcWithImm
                                                                         : 0u;
  if (cqe.wc_flags != flags || (flags != 0 && cqe.imm_data != message.imm)) {
    return fail(what + ", wrong immediate");
  }
  if (cqe.byte_len != message.payload.size()) return fail(what + ", wrong length");
  const uint64_t place = message.remote != 0 ? message.remote : receive.address;
  if (message.remote == 0 && message.payload.size() > receive.length) {
    return fail(what + ", longer than the receive");
  }
  if (!std::ranges::equal(side.memory(place, message.payload.size()), message.payload)) {
    return fail(what + ", wrong data");
  }
  side.image.set(place, message.payload);
  if (act == Act::kSendInvalidate) half.window.state = Window::State::kFree;
}

// ---- Events ---------------------------------------------------------------------------------

void World::on_srq_limit(ReceiveQueue& queue) {
  // Some of the posted receives may already be in use by messages.
  if (queue.limit == 0 || queue.posted.size() >= queue.limit + queue.users) {
    fail("an event of a limit that is not reached");
  }
  queue.limit = 0;
}

void World::on_event(uint32_t side, const engine::AsyncEvent& event) {
  if (event.type == EventType::kSrqLimitReached) {
    return on_srq_limit(event.element == kSrqHandle ? sides_[side].srq : sides_[side].xrc_srq);
  }
  const auto connection = static_cast<uint32_t>(event.element - handle_of(0));
  if (connection >= kConnections) return fail("an event of a QP that is not there");
  Half& half = sides_[side].halves[connection];
  const auto sent = [&](WcStatus fate) {
    return sides_[1 - side].halves[connection].mistakes.contains(fate);
  };
  const auto is_right = [&] {
    switch (event.type) {
      case EventType::kQpAccessErr:
        return sent(WcStatus::kRemAccessErr);
      case EventType::kQpReqErr:
        return sent(WcStatus::kRemInvReqErr);
      case EventType::kQpLastWqeReached:
        return is_shared(half.kind) && half.recv_failed && !half.told_last_wqe;
      default:
        return false;
    }
  };
  if (!is_right()) {
    return fail(fmt::format("side {} connection {}: event {}", side, connection,
                            static_cast<int>(event.type)));
  }
  if (event.type == EventType::kQpLastWqeReached) {
    half.told_last_wqe = true;
  } else {
    fail_qp(half, false);
  }
}

// ---- The end --------------------------------------------------------------------------------

void World::check_end_of(uint32_t i, uint32_t c) {
  Half& half = sides_[i].halves[c];
  const Half& peer = sides_[1 - i].halves[c];
  const auto wrong = [&](const std::string& what) {
    fail(fmt::format("side {} connection {}: {}", i, c, what));
  };
  while (!half.sends.empty()) {
    const Message left = std::move(half.sends.front());
    half.sends.pop_front();
    // Unsignaled requests at the end may have succeeded without a completion.
    if (left.signaled || left.fate != WcStatus::kSuccess) {
      return wrong(fmt::format("no completion of {:#x}", left.wr_id));
    }
    on_success(i, c, left);
  }
  if (!half.to_send.empty()) wrong("a packet was not sent");
  if (is_shared(half.kind) && half.recv_failed && !half.told_last_wqe) {
    wrong("no event says that it takes no more from its SRQ");
  }
  if (half.receives->posted.size() < half.receives->limit) wrong("no event of the SRQ's limit");
  if (!half.recv_failed && !peer.send_failed && !half.arrivals.empty()) {
    wrong("a message did not arrive");
  }
  if (!is_reliable(half.kind)) return;
  const uint64_t words = kWords + c * kWordsEach * sizeof(uint64_t);
  if (!half.failed() && !peer.failed()) {
    const auto bytes = std::bit_cast<std::array<uint8_t, sizeof(half.words)>>(half.words);
    return sides_[1 - i].image.set(words, bytes);
  }
  sides_[1 - i].image.leave_open(words, sizeof(half.words));
  // a message may have filled one of the posted receives partly
  for (const Receive& left : half.receives->posted) {
    sides_[i].image.leave_open(left.address, left.length);
  }
}

void World::check_end() {
  for (uint32_t i = 0; i < kSides; ++i) {
    for (uint32_t c = 0; c < kConnections; ++c) check_end_of(i, c);
  }
  for (uint32_t i = 0; i < kSides; ++i) {
    Side& side = sides_[i];
    const auto memory = side.memory(kMemory, side.free - kMemory);
    if (const auto at = side.image.first_difference(memory)) {
      fail(fmt::format("side {}: the byte at {:#x} is wrong", i, *at));
    }
  }
}

}  // namespace rocemu::property
