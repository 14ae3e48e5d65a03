// A completion comes between the last poll and the request for notification, and the program waits.
// RIGHT: it polls once more before it waits.
#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){.with_channel = 1});
  connect_pair(&p);
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
  check(post_send(&p.a, 1, 1) == 0, "ibv_post_send");
  next_success(p.a.cq);  // the message has arrived
  check(ibv_req_notify_cq(p.b.cq, 0) == 0, "ibv_req_notify_cq");
  struct ibv_wc wc;
#ifdef RIGHT
  while (ibv_poll_cq(p.b.cq, 1, &wc) == 0) {
  }
  check(post_receive(&p.b, 2) == 0, "ibv_post_recv");
  check(post_send(&p.a, 2, 1) == 0, "ibv_post_send");
#endif
  struct ibv_cq* cq;
  void* context;
  check(ibv_get_cq_event(p.b.channel, &cq, &context) == 0, "ibv_get_cq_event");  // wrong
  ibv_ack_cq_events(cq, 1);
  check(ibv_poll_cq(p.b.cq, 1, &wc) == 1, "ibv_poll_cq");
  next_success(p.a.cq);
  close_pair(&p);
  return 0;
}
