// Two requests for notification cause one event, and the program waits for a second one
// (ibv_req_notify_cq(3): one event for the next completion). RIGHT: it arms the CQ again.
#include "pair.h"

static void take_event(struct pair* p) {
  struct ibv_cq* cq;
  void* context;
  check(ibv_get_cq_event(p->b.channel, &cq, &context) == 0, "ibv_get_cq_event");  // wrong
  ibv_ack_cq_events(cq, 1);
}

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){.with_channel = 1});
  connect_pair(&p);
  for (int i = 0; i < 2; ++i) check(ibv_req_notify_cq(p.b.cq, 0) == 0, "ibv_req_notify_cq");
  for (int i = 0; i < 2; ++i) {
    check(post_receive(&p.b, i) == 0, "ibv_post_recv");
    check(post_send(&p.a, i, 1) == 0, "ibv_post_send");
    next_success(p.a.cq);
    take_event(&p);  // waits for ever the second time
#ifdef RIGHT
    check(ibv_req_notify_cq(p.b.cq, 0) == 0, "ibv_req_notify_cq");
#endif
    next_success(p.b.cq);
  }
  close_pair(&p);
  return 0;
}
