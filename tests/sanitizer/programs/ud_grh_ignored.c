// A receive of a UD QP has room for the message, and not for the 40 bytes before it. RIGHT: for
// both.
#include "pair.h"

static void post_receive_of(struct side* s, uint32_t length) {
  struct ibv_sge sge = whole(s);
  sge.length = length;
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  check(ibv_post_recv(s->qp, &wr, &bad) == 0, "ibv_post_recv");
}

static void send_datagram(struct pair* p, uint32_t length) {
  struct ibv_sge sge = whole(&p->a);
  sge.length = length;
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_SEND,
                           .send_flags = IBV_SEND_SIGNALED,
                           .wr.ud = {p->ah, p->b.qp->qp_num, 0x11111111}};
  struct ibv_send_wr* bad;
  check(ibv_post_send(p->a.qp, &wr, &bad) == 0, "ibv_post_send");
  next_success(p->a.cq);
}

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){.type = IBV_QPT_UD});
  connect_pair(&p);
#ifdef RIGHT
  post_receive_of(&p.b, 40 + 64);
#else
  post_receive_of(&p.b, 64);
#endif
  send_datagram(&p, 64);
#ifndef RIGHT
  send_datagram(&p, 24);  // fits, and comes behind the one that is lost
#endif
  next_success(p.b.cq);
  close_pair(&p);
  return 0;
}
