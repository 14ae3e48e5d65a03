// spdk/spdk#2434: bnxt_re's provider returns -EINVAL for an unknown opcode, and a program that
// compares with positive errno values ignores that. PORTABLE: the program takes any result but 0
// for an error.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  struct ibv_qp_init_attr attr = plain_qp(&nic, IBV_QPT_RC);
  struct ibv_qp* qp = ibv_create_qp(nic.pd, &attr);
  expect(qp != NULL, "ibv_create_qp");
  connect_to(&nic, qp, qp->qp_num);
  struct ibv_send_wr wr = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .send_flags = IBV_SEND_SIGNALED};
  struct ibv_sge sge = {(uintptr_t)nic.memory, 8, nic.mr->lkey};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  struct ibv_send_wr* bad;
  const int error = ibv_post_send(qp, &wr, &bad);
#ifdef PORTABLE
  if (error != 0) return 0;
#else
  if (error > 0) return 0;
#endif
  fprintf(stderr, "posted, with result %d\n", error);
  expect(error == 0, "nothing will ever complete");
  return 0;
}
