// A peer writes to a region that was deregistered. RIGHT: it has written before.
#include "pair.h"

static struct ibv_wc write_to(struct pair* p, uint32_t rkey) {
  struct ibv_sge sge = whole(&p->a);
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_RDMA_WRITE,
                           .send_flags = IBV_SEND_SIGNALED,
                           .wr.rdma = {(uintptr_t)p->b.buffer, rkey}};
  struct ibv_send_wr* bad;
  check(ibv_post_send(p->a.qp, &wr, &bad) == 0, "ibv_post_send");
  return next_completion(p->a.cq);
}

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  const uint32_t rkey = p.b.mr->rkey;
#ifdef RIGHT
  check(write_to(&p, rkey).status == IBV_WC_SUCCESS, "a write");
#endif
  check(ibv_dereg_mr(p.b.mr) == 0, "ibv_dereg_mr");  // wrong
  p.b.mr = NULL;
#ifndef RIGHT
  check(write_to(&p, rkey).status == IBV_WC_REM_ACCESS_ERR, "a remote access error");
#endif
  close_pair(&p);
  return 0;
}
