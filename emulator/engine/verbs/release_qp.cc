#include "emulator/engine/verbs/release_qp.h"

#include <algorithm>

#include "emulator/engine/transport/receive_queue.h"
#include "emulator/engine/transport/response_queue.h"
#include "emulator/engine/verbs/mcast_commands.h"

namespace rocemu::engine {
namespace {

void destroy_qp(CommandContext& context, QueuePair& qp) {
  Objects& objects = context.objects;
  response_queue::flush_held_ack(context.transport, qp);
  context.memory.forget_copies(qp.client, qp.number);
  objects.mrs.unbind_windows_of(qp.number);
  receive_queue::give_back(context.transport, qp);
  if (qp.multicast_groups != 0) {
    for (const wire::IpAddress& left : objects.multicast.remove(qp.device, qp.number)) {
      report_membership(context, qp.device, left, false);
    }
  }
  if (!qp.xrcd) {
    if (qp.srq) --objects.srqs.find(*qp.srq)->users;
    CompletionQueue& send_cq = *objects.cqs.find(qp.send_cq);
    leave<&QueuePair::of_send_cq>(send_cq.senders, qp);
    --send_cq.users;
    if (qp.type != abi::QpType::kXrcSend) {
      CompletionQueue& recv_cq = *objects.cqs.find(qp.recv_cq);
      leave<&QueuePair::of_recv_cq>(recv_cq.receivers, qp);
      --recv_cq.users;
    }
    --objects.pds.find(qp.pd)->users;
  }
  objects.qps.destroy(qp.number);
}

}  // namespace

void release_qp(CommandContext& context, QueuePair& qp, ClientId client, uint64_t user_handle) {
  Objects& objects = context.objects;
  if (qp.xrcd) --objects.xrcds.find(*qp.xrcd)->openers.at(client).objects;
  auto& further = qp.further_references;
  const auto named = std::ranges::find_if(further, [&](const QueuePair::Reference& it) {
    return it.client == client && it.user_handle == user_handle;
  });
  if (named != further.end()) {
    further.erase(named);
  } else if (qp.client != client) {
    further.erase(std::ranges::find(further, client, &QueuePair::Reference::client));
  } else if (further.empty()) {
    destroy_qp(context, qp);
  } else {
    objects.qps.give(qp, further.front().client);
    qp.user_handle = further.front().user_handle;
    further.erase(further.begin());
  }
}

}  // namespace rocemu::engine
