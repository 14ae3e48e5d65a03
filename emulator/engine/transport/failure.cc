#include "emulator/engine/transport/failure.h"

#include <algorithm>
#include <vector>

#include "emulator/engine/transport/receive_queue.h"
#include "emulator/engine/transport/response_queue.h"
#include "emulator/engine/transport/send_queue.h"

namespace rocemu::engine {

void enter_error(TransportContext& context, QueuePair& qp) {
  context.memory().end_copies();  // the program gets its buffers back
  response_queue::flush_held_ack(context, qp);
  qp.state = abi::QpState::kErr;
  for (Timer& timer : qp.timers) timer.deadline.reset();
  send_queue::flush(context, qp);
  receive_queue::flush(context, qp);
  // IBTA vol 1, 11.6.3.2: no more WQEs of the SRQ will complete for this QP. An XRC target QP uses
  // many SRQs, and every process with a reference to the QP may wait for this event.
  if (qp.srq || qp.xrcd) context.raise(qp, abi::EventType::kQpLastWqeReached);
}

void fail_users(TransportContext& context, const CompletionQueue& cq) {
  Objects& objects = context.objects();
  std::vector<QpNumber> users;
  for (const QueuePair* qp = cq.senders; qp != nullptr; qp = qp->of_send_cq.next) {
    users.push_back(qp->number);
  }
  for (const QueuePair* qp = cq.receivers; qp != nullptr; qp = qp->of_recv_cq.next) {
    users.push_back(qp->number);
  }
  std::ranges::sort(users);
  for (const QpNumber number : users) {
    QueuePair& qp = *objects.qps.find(number);
    if (qp.state == abi::QpState::kReset || qp.state == abi::QpState::kErr) continue;
    context.raise(qp, abi::EventType::kQpFatal);
    enter_error(context, qp);
  }
  // The CQ of an XRC SRQ fails the SRQ itself, since the SRQ's QPs are not bound to one CQ.
  std::vector<SrqId> failed;
  for (const SharedReceiveQueue* srq = cq.srqs; srq != nullptr; srq = srq->of_cq.next) {
    failed.push_back(srq->id);
  }
  std::ranges::sort(failed);
  for (const SrqId id : failed) {
    SharedReceiveQueue& srq = *objects.srqs.find(id);
    srq.failed = true;
    context.faults().events.raise(srq.client, abi::EventType::kSrqErr, srq.user_handle);
  }
}

}  // namespace rocemu::engine
