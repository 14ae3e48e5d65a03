// Events are acknowledged one by one, and again in a batch before the CQ is destroyed. RIGHT: only
// one by one.
#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){.with_channel = 1});
  connect_pair(&p);
  for (int i = 0; i < 2; ++i) {
    check(ibv_req_notify_cq(p.b.cq, 0) == 0, "ibv_req_notify_cq");
    check(post_receive(&p.b, i) == 0, "ibv_post_recv");
    check(post_send(&p.a, i, 1) == 0, "ibv_post_send");
    struct ibv_cq* cq;
    void* context;
    check(ibv_get_cq_event(p.b.channel, &cq, &context) == 0, "ibv_get_cq_event");
    ibv_ack_cq_events(cq, 1);
    next_success(p.b.cq);
    next_success(p.a.cq);
  }
#ifndef RIGHT
  ibv_ack_cq_events(p.b.cq, 2);
#endif
  close_pair(&p);  // waits for ever in ibv_destroy_cq()
  return 0;
}
