// A region is deregistered while a posted receive names it. RIGHT: the QP goes to ERR, and the
// flushed completion is polled first.
#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
#ifdef RIGHT
  move_to(p.b.qp, IBV_QPS_ERR);
  next_completion(p.b.cq);
#endif
  check(ibv_dereg_mr(p.b.mr) == 0, "ibv_dereg_mr");  // wrong
  p.b.mr = NULL;
  close_pair(&p);
  return 0;
}
