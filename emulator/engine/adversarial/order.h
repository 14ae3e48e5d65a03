// The class `order`: completions of different queues arrive in any order, and events arrive late.
//
// The completions of one work queue keep their order (IBTA vol 1, 10.8.5). There is no order
// between the completions of different queues, QPs and CQs. With the class `placement`, a
// completion waits for the bytes that it makes visible.
//
// A responder may send an acknowledgement late, and one acknowledgement may cover several messages.
// The response to a READ or atomic acknowledges all earlier requests (9.7.5.1.2). The responder
// must acknowledge before the requester's timeout (9.7.6.1.3).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/abi/rings.h"
#include "emulator/engine/adversarial/draw.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/time.h"
#include "emulator/engine/objects/queue_pair.h"

namespace rocemu::engine::adversarial {

struct HeldCompletion {
  ClientId client;  // of the CQ
  CqId cq;
  abi::Cqe cqe;
  bool solicits = false;
  Instant until{};
};

struct HeldEvent {
  ClientId client;
  std::optional<CqId> cq;  // of an event of a completion channel; none for an async event
  abi::EventType type{};
  uint64_t element = 0;
  Instant until{};
};

class Order {
 public:
  explicit Order(uint64_t seed)
      : draw_(seed, Class::kOrder), acknowledgements_(~seed, Class::kOrder) {}

  /// Returns a delay for a completion or an event. Half of the delays are 0.
  Duration delay();

  /// Returns a delay for an acknowledgement of the QP. Half of the delays are 0.
  Duration acknowledgement_delay(const QueuePair& qp);
  /// Decides, with a probability of one half, to drop an acknowledgement that the following
  /// response covers.
  bool drops_acknowledgement() { return acknowledgements_.one_in(2); }

  /// Keeps the completion until it is due, and at least until the previous completion of the same
  /// work queue is due.
  void keep(HeldCompletion held);
  void keep(HeldEvent held);
  bool holds_queue(const abi::Cqe& cqe) const;
  bool empty() const { return completions_.empty() && events_.empty(); }

  /// Removes and returns the completions that are due, and all completions of the client `of`.
  std::vector<HeldCompletion> take_completions(Instant now, std::optional<ClientId> of = {});
  std::vector<HeldEvent> take_events(Instant now, std::optional<ClientId> of = {});
  std::optional<Instant> next_due() const;
  /// Discards the completions and events of a client that has ended.
  void drop(ClientId client);

 private:
  Draw draw_;
  Draw acknowledgements_;
  std::deque<HeldCompletion> completions_;  // in the order of their creation
  std::deque<HeldEvent> events_;
};

}  // namespace rocemu::engine::adversarial
