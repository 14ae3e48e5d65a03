// Four sends complete into a CQ of two. RIGHT: the CQ is large enough.
#include "pair.h"

int main(void) {
  struct pair p;
#ifdef RIGHT
  open_pair(&p, (struct pair_options){.cqe = 8});
#else
  open_pair(&p, (struct pair_options){.cqe = 2});
#endif
  connect_pair(&p);
  struct ibv_sge sge = whole(&p.a);
  for (int i = 0; i < 4; ++i) {
    struct ibv_send_wr wr = {.wr_id = i,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {(uintptr_t)p.b.buffer, p.b.mr->rkey}};
    struct ibv_send_wr* bad;
    check(ibv_post_send(p.a.qp, &wr, &bad) == 0, "ibv_post_send");
  }
#ifdef RIGHT
  for (int i = 0; i < 4; ++i) next_success(p.a.cq);
#else
  struct ibv_async_event event;
  do {
    check(ibv_get_async_event(p.context, &event) == 0, "ibv_get_async_event");
    ibv_ack_async_event(&event);
  } while (event.event_type != IBV_EVENT_CQ_ERR);
  exit(0);
#endif
  close_pair(&p);
  return 0;
}
