// A QP is destroyed with a signaled send of which the program knows nothing. RIGHT: it polls the
// completion first, and only a receive is left.
#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  check(post_receive(&p.b, 1) == 0 && post_receive(&p.a, 2) == 0, "ibv_post_recv");
  check(post_send(&p.a, 3, 1) == 0, "ibv_post_send");
  next_success(p.b.cq);
#ifdef RIGHT
  next_success(p.a.cq);
#endif
  check(ibv_destroy_qp(p.a.qp) == 0, "ibv_destroy_qp");  // wrong
  p.a.qp = NULL;
  close_pair(&p);
  return 0;
}
