#include "emulator/engine/objects/queue_pair.h"

namespace rocemu::engine {

void QueuePair::reset() {
  const abi::QpCap cap = attr.cap;
  state = abi::QpState::kReset;
  ++generation;
  attr = abi::QpAttr{};
  attr.cap = cap;
  path = Path{};
  for (Timer& timer : timers) timer.deadline.reset();
  next_cnp = {};
  congestion.reset();

  send.queue.clear();
  recv.queue.clear();
  SendHalf next_send;  // the rings stay: their counts go on through every life
  next_send.queue = std::move(send.queue);
  next_send.next = next_send.queue.head();
  send = std::move(next_send);
  RecvHalf next_recv;
  next_recv.queue = std::move(recv.queue);
  recv = std::move(next_recv);
}

}  // namespace rocemu::engine
