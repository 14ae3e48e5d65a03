// A QP goes to ERR, and is destroyed before its flushed completions were polled. RIGHT: after them.
#include "pair.h"

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
  return 0;
}
