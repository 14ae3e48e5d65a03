// A send queue fills with requests that are not signaled. RIGHT: one of every four is, and its
// completion frees the queue.
#include "pair.h"

static void write_once(struct pair* p, int signaled) {
  struct ibv_sge sge = whole(&p->a);
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_RDMA_WRITE,
                           .send_flags = signaled ? IBV_SEND_SIGNALED : 0,
                           .wr.rdma = {(uintptr_t)p->b.buffer, p->b.mr->rkey}};
  struct ibv_send_wr* bad;
  if (ibv_post_send(p->a.qp, &wr, &bad) == 0) return;  // wrong
  exit(0);
}

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  for (int i = 1; i <= 8; ++i) {
#ifdef RIGHT
    write_once(&p, i % 4 == 0);
    if (i % 4 == 0) next_success(p.a.cq);
#else
    write_once(&p, 0);
#endif
  }
  close_pair(&p);
  return 0;
}
