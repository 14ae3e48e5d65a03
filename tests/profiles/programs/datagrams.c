// openucx/ucx#5148: the program finds its peers by UD, which qedr lacks. PORTABLE: without UD, the
// program exchanges addresses by TCP.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  struct ibv_qp_init_attr attr = plain_qp(&nic, IBV_QPT_UD);
  struct ibv_qp* qp = ibv_create_qp(nic.pd, &attr);
#ifndef PORTABLE
  expect(qp != NULL, "ibv_create_qp of UD");
#endif
  (void)qp;
  return 0;
}
