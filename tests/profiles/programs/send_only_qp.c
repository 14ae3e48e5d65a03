// mlx4 refuses a QP that receives nothing: 0 receive WRs without an SRQ cause EINVAL. PORTABLE: the
// program requests a receive queue for one WR, and never posts to it.
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
