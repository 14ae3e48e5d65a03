// A send reads beyond its region, and a peer writes beyond another. RIGHT: to the last byte.
#include "pair.h"

static struct ibv_wc write_to(struct side* from, struct side* to, uint32_t length, int64_t offset) {
  struct ibv_sge sge = whole(from);
  sge.length = length;
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_RDMA_WRITE,
                           .send_flags = IBV_SEND_SIGNALED,
                           .wr.rdma = {(uintptr_t)to->buffer + offset, to->mr->rkey}};
  struct ibv_send_wr* bad;
  check(ibv_post_send(from->qp, &wr, &bad) == 0, "ibv_post_send");
  return next_completion(from->cq);
}

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
#ifdef RIGHT
  check(write_to(&p.a, &p.b, BUFFER_SIZE, 0).status == IBV_WC_SUCCESS, "all of it");
  check(write_to(&p.b, &p.a, 8, BUFFER_SIZE - 8).status == IBV_WC_SUCCESS, "the last bytes");
#else
  check(write_to(&p.a, &p.b, 8, BUFFER_SIZE - 5).status == IBV_WC_REM_ACCESS_ERR, "beyond");
  move_to(p.a.qp, IBV_QPS_RESET);
  move_to(p.b.qp, IBV_QPS_RESET);
  connect_pair(&p);
  check(write_to(&p.a, &p.b, BUFFER_SIZE + 7, 0).status == IBV_WC_LOC_PROT_ERR, "beyond");
#endif
  close_pair(&p);
  return 0;
}
