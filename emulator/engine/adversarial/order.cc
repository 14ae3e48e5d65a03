#include "emulator/engine/adversarial/order.h"

#include <algorithm>
#include <utility>

namespace rocemu::engine::adversarial {
namespace {

/// Returns whether both completions belong to the same work queue. The receives of one QP from an
/// SRQ count as one queue.
bool is_of_same_queue(const abi::Cqe& a, const abi::Cqe& b) {
  const bool a_sends = a.queue == abi::WorkQueue::kSend;
  const bool b_sends = b.queue == abi::WorkQueue::kSend;
  return a.qp_num == b.qp_num && a_sends == b_sends;
}

template <class Held>
std::vector<Held> take(std::deque<Held>& list, Instant now, std::optional<ClientId> of) {
  std::vector<Held> due;
  std::deque<Held> left;
  for (Held& held : list) {
    const bool goes = held.until <= now || held.client == of;
    if (goes) {
      due.push_back(std::move(held));
    } else {
      left.push_back(std::move(held));
    }
  }
  list = std::move(left);
  return due;
}

}  // namespace

Duration Order::delay() {
  const Duration delay = draw_.delay();
  return draw_.one_in(2) ? delay : Duration(0);
}

Duration Order::acknowledgement_delay(const QueuePair& qp) {
  const Duration delay = acknowledgements_.delay();
  if (acknowledgements_.one_in(2)) return Duration(0);
  // Both ends usually have the same timeout. Waiting for at most a quarter of it leaves time for
  // the transmission.
  if (qp.attr.timeout == 0) return delay;
  return std::min(delay, Duration(int64_t{4096} << qp.attr.timeout) / 4);
}

bool Order::holds_queue(const abi::Cqe& cqe) const {
  return std::ranges::any_of(
      completions_, [&](const HeldCompletion& held) { return is_of_same_queue(held.cqe, cqe); });
}

void Order::keep(HeldCompletion held) {
  for (const HeldCompletion& earlier : completions_) {
    if (is_of_same_queue(earlier.cqe, held.cqe)) held.until = std::max(held.until, earlier.until);
  }
  completions_.push_back(held);
}

void Order::keep(HeldEvent held) {
  // Asynchronous events of a client keep their order, and so do the events of one completion queue.
  for (const HeldEvent& earlier : events_) {
    if (earlier.client == held.client && earlier.cq == held.cq) {
      held.until = std::max(held.until, earlier.until);
    }
  }
  events_.push_back(held);
}

std::vector<HeldCompletion> Order::take_completions(Instant now, std::optional<ClientId> of) {
  if (completions_.empty()) return {};
  return take(completions_, now, of);
}

std::vector<HeldEvent> Order::take_events(Instant now, std::optional<ClientId> of) {
  if (events_.empty()) return {};
  return take(events_, now, of);
}

std::optional<Instant> Order::next_due() const {
  std::optional<Instant> first;
  for (const HeldCompletion& held : completions_) {
    if (!first || held.until < *first) first = held.until;
  }
  for (const HeldEvent& held : events_) {
    if (!first || held.until < *first) first = held.until;
  }
  return first;
}

void Order::drop(ClientId client) {
  std::erase_if(completions_, [&](const HeldCompletion& held) { return held.client == client; });
  std::erase_if(events_, [&](const HeldEvent& held) { return held.client == client; });
}

}  // namespace rocemu::engine::adversarial
