// Two QPs write the same bytes of a peer, the second before the first is complete. (The first waits
// behind a message without a receive, so that it is certain to be second.) RIGHT: it is complete; or
// the bytes are others; and reads and atomics, which may meet.
#include "pair.h"

static struct pair p;
static struct ibv_mr* shared;  // the buffer of b

static struct ibv_qp* another_qp(struct side* s) {
  struct ibv_qp_init_attr attr = {
      .send_cq = s->cq,
      .recv_cq = s->cq,
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = IBV_QPT_RC};
  struct ibv_qp* qp = ibv_create_qp(p.pd, &attr);
  check(qp != NULL, "ibv_create_qp");
  return qp;
}

static void execute(struct ibv_qp* qp, enum ibv_wr_opcode opcode, int at) {
  struct ibv_sge sge = whole(&p.a);
  sge.addr += 64;
  sge.length = 8;
  struct ibv_send_wr wr = {
      .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
  wr.wr.rdma.remote_addr = (uintptr_t)p.b.buffer + at;
  wr.wr.rdma.rkey = shared->rkey;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic.remote_addr = (uintptr_t)p.b.buffer + at;
    wr.wr.atomic.rkey = shared->rkey;
  }
  struct ibv_send_wr* bad;
  check(ibv_post_send(qp, &wr, &bad) == 0, "ibv_post_send");
}

int main(void) {
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  shared = ibv_reg_mr(p.pd, p.b.buffer, BUFFER_SIZE,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                          IBV_ACCESS_REMOTE_ATOMIC);
  check(shared != NULL, "ibv_reg_mr");
  struct ibv_qp* second = another_qp(&p.a);
  struct ibv_qp* target = another_qp(&p.b);
  connect_qp(second, target->qp_num);
  connect_qp(target, second->qp_num);
#ifdef RIGHT
  execute(p.a.qp, IBV_WR_RDMA_WRITE, 64);
  next_success(p.a.cq);
  execute(second, IBV_WR_RDMA_WRITE, 64);
  next_success(p.a.cq);
  execute(p.a.qp, IBV_WR_RDMA_WRITE, 64);  // disjoint halves
  execute(second, IBV_WR_RDMA_WRITE, 72);
  execute(p.a.qp, IBV_WR_RDMA_WRITE, 64);  // the order of one QP
  for (int i = 0; i < 3; ++i) next_success(p.a.cq);
  const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
  for (int i = 0; i < 2; ++i) {
    execute(p.a.qp, opcodes[i], 64);
    execute(second, opcodes[i], 64);
    for (int j = 0; j < 2; ++j) next_success(p.a.cq);
  }
#else
  check(post_send(&p.a, 1, 1) == 0, "ibv_post_send");
  execute(p.a.qp, IBV_WR_RDMA_WRITE, 64);
  execute(second, IBV_WR_RDMA_WRITE, 68);
  next_success(p.a.cq);
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
  next_success(p.a.cq);
  next_success(p.a.cq);
#endif
  check(ibv_dereg_mr(shared) == 0, "ibv_dereg_mr");
  check(ibv_destroy_qp(second) == 0 && ibv_destroy_qp(target) == 0, "ibv_destroy_qp");
  close_pair(&p);
  return 0;
}
