// An address handle is destroyed while a send names it. RIGHT: once the completion was polled.
#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){.type = IBV_QPT_UD});
  connect_pair(&p);
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
  struct ibv_sge sge = whole(&p.a);
  sge.length = 64;
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_SEND,
                           .send_flags = IBV_SEND_SIGNALED,
                           .wr.ud = {p.ah, p.b.qp->qp_num, 0x11111111}};
  struct ibv_send_wr* bad;
  check(ibv_post_send(p.a.qp, &wr, &bad) == 0, "ibv_post_send");
#ifdef RIGHT
  next_success(p.a.cq);
#endif
  check(ibv_destroy_ah(p.ah) == 0, "ibv_destroy_ah");  // wrong
  p.ah = NULL;
#ifndef RIGHT
  next_completion(p.a.cq);
#endif
  close_pair(&p);
  return 0;
}
