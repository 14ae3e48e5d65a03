// Of three receives two have the same buffer, and the second message is put over the first before
// that was polled. RIGHT: the messages come one at a time, or have buffers of their own; or all
// receives have the same buffer, and the program wants no message.
#include "pair.h"

static void receive_into(struct pair* p, int at) {
  struct ibv_sge sge = {(uintptr_t)p->b.buffer + (unsigned)at, 8, p->b.mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  check(ibv_post_recv(p->b.qp, &wr, &bad) == 0, "ibv_post_recv");
}

static void exchange(struct pair* p, int messages) {
  for (int i = 0; i < messages; ++i) {
    check(post_send(&p->a, i, 1) == 0, "ibv_post_send");
    next_success(p->a.cq);  // and so the message has arrived
  }
  for (int i = 0; i < messages; ++i) next_success(p->b.cq);
}

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
#ifdef RIGHT
  receive_into(&p, 0);
  receive_into(&p, 0);
  exchange(&p, 2);
  for (int i = 0; i < 4; ++i) {
    receive_into(&p, i % 2 * 4);
    exchange(&p, 1);
  }
  for (int i = 0; i < 3; ++i) receive_into(&p, 8 * i);
  exchange(&p, 3);
#else
  receive_into(&p, 0);
  receive_into(&p, 8);
  receive_into(&p, 12);  // wrong
  exchange(&p, 3);
#endif
  close_pair(&p);
  return 0;
}
