// mlx4 refuses a QP that receives nothing: EINVAL for 0 receive WRs without an SRQ.
// PORTABLE: it has a receive queue of one, and never posts to it.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  struct ibv_qp_init_attr attr = plain_qp(&nic, IBV_QPT_RC);
#ifndef PORTABLE
  attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
#endif
  expect(ibv_create_qp(nic.pd, &attr) != NULL, "ibv_create_qp without receives");
  return 0;
}
