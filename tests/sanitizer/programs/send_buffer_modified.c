// The buffer of a send is changed before its completion was polled. RIGHT: after, or at once where
// the send was inline, or by a READ that a fenced send waits for (man ibv_post_send,
// IBV_SEND_FENCE; IBTA vol 1, 10.8.3.3).
#include "pair.h"

#ifdef RIGHT
// Sends the bytes that a READ gets, which is unfinished when the send is posted.
static void send_what_is_read(struct pair* p) {
  struct ibv_sge sge = {(uintptr_t)p->a.buffer + 64, 8, p->a.mr->lkey};
  p->b.buffer[64] = 5;
  struct ibv_send_wr send = {.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
  send.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
  struct ibv_send_wr read = {
      .wr_id = 1, .next = &send, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
  read.wr.rdma.remote_addr = (uintptr_t)p->b.buffer + 64;
  read.wr.rdma.rkey = p->b.mr->rkey;
  struct ibv_send_wr* bad;
  check(post_receive(&p->b, 3) == 0, "ibv_post_recv");
  check(ibv_post_send(p->a.qp, &read, &bad) == 0, "ibv_post_send");
  check(next_success(p->a.cq).wr_id == 2, "the send");
  for (int i = 0; i < 3; ++i) next_success(p->b.cq);
  check(p->b.buffer[0] == 5, "the bytes that were read");
}
#endif

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
  send_what_is_read(&p);
#else
  p.a.buffer[3] = 7;
  next_success(p.a.cq);
#endif
  close_pair(&p);
  return 0;
}
