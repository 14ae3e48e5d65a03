// A QP goes to ERR, and is destroyed before its flushed completions were polled. RIGHT: after them,
// or there are none: a send without IBV_SEND_SIGNALED that was executed has no completion (man
// ibv_post_send).
#include "pair.h"

#ifdef RIGHT
// Ends without a completion of a send whose arrival the peer has confirmed.
static void destroy_after_confirmation(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  check(post_receive(&p.a, 1) == 0 && post_receive(&p.b, 1) == 0, "ibv_post_recv");
  check(post_send(&p.a, 1, 0) == 0, "ibv_post_send");
  next_success(p.b.cq);
  check(post_send(&p.b, 1, 1) == 0, "ibv_post_send");
  next_success(p.a.cq);
  next_success(p.b.cq);
  move_to(p.a.qp, IBV_QPS_ERR);
  close_pair(&p);
}
#endif

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  for (int i = 0; i < 3; ++i) check(post_receive(&p.b, i) == 0, "ibv_post_recv");
  move_to(p.b.qp, IBV_QPS_ERR);
#ifdef RIGHT
  for (int i = 0; i < 3; ++i) next_completion(p.b.cq);
#endif
  check(ibv_destroy_qp(p.b.qp) == 0, "ibv_destroy_qp");  // wrong
  p.b.qp = NULL;
  close_pair(&p);
#ifdef RIGHT
  destroy_after_confirmation();
#endif
  return 0;
}
