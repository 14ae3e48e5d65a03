// The buffer of a send is changed before its completion was polled. RIGHT: after, or at once where
// the send was inline.
#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){.max_inline = 16});
  connect_pair(&p);
  check(post_receive(&p.b, 1) == 0 && post_receive(&p.b, 2) == 0, "ibv_post_recv");
  check(post_send(&p.a, 1, 1) == 0, "ibv_post_send");
#ifdef RIGHT
  next_success(p.a.cq);
  p.a.buffer[3] = 7;
  struct ibv_sge sge = whole(&p.a);
  sge.length = 8;
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_SEND,
                           .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE};
  struct ibv_send_wr* bad;
  check(ibv_post_send(p.a.qp, &wr, &bad) == 0, "ibv_post_send");
  p.a.buffer[3] = 8;
  next_success(p.a.cq);
#else
  p.a.buffer[3] = 7;
  next_success(p.a.cq);
#endif
  close_pair(&p);
  return 0;
}
