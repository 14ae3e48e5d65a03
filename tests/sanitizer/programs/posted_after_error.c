// After an error completion the program posts to the QP as if nothing had happened. RIGHT: it moves
// the QP to ERR itself and posts a marker, whose completion is the last.
#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  // The message is longer than the receive.
  struct ibv_sge sge = whole(&p.b);
  sge.length = 4;
  struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  check(ibv_post_recv(p.b.qp, &receive, &bad) == 0, "ibv_post_recv");
  check(post_send(&p.a, 1, 1) == 0, "ibv_post_send");
  check(next_completion(p.a.cq).status == IBV_WC_REM_INV_REQ_ERR, "a remote error");
  struct ibv_wc wc;
  check(ibv_poll_cq(p.a.cq, 1, &wc) == 0, "no more completions");
#ifdef RIGHT
  move_to(p.a.qp, IBV_QPS_ERR);
#endif
  check(post_send(&p.a, 77, 1) == 0, "ibv_post_send");  // wrong
  check(next_completion(p.a.cq).wr_id == 77, "the marker");
  close_pair(&p);
  return 0;
}
