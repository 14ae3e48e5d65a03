// The receiver polls its empty CQ, arms it and waits. A completion between the poll and
// ibv_req_notify_cq(3) makes no event.
// Depth 2: the message comes after the poll and before the arm. It hangs.
#include <err.h>

#include "race.h"

enum { MESSAGES = 3 };
static struct end receiver, sender;

static void* send_all(void* unused) {
  for (uint64_t i = 0; i < MESSAGES; ++i) {
    post_send(&sender, i);
    wait_for_one(&sender);
  }
  return unused;
}

int main(int argc, char** argv) {
  const bool right = is_right(argc, argv);
  open_pair(&receiver, &sender);
  for (uint64_t i = 0; i < MESSAGES; ++i) post_receive(&receiver, i);
  const pthread_t thread = start(send_all, NULL);
  for (int got = 0; got < MESSAGES;) {
    struct ibv_wc wc;
    if (right && ibv_req_notify_cq(receiver.cq, 0) != 0) err(1, "ibv_req_notify_cq");
    if (poll_one(&receiver, &wc)) {
      ++got;
      continue;
    }
    if (!right && ibv_req_notify_cq(receiver.cq, 0) != 0) err(1, "ibv_req_notify_cq");
    struct ibv_cq* cq;
    void* context;
    if (ibv_get_cq_event(receiver.channel, &cq, &context) != 0) err(1, "ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
  }
  join(thread);
}
