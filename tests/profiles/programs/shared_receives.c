// openucx/ucx#9736: the program needs an SRQ, which irdma, erdma and mana lack. PORTABLE: if
// max_srq is 0, the program posts separate receives to each QP.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  struct ibv_qp_init_attr attr = plain_qp(&nic, IBV_QPT_RC);
  struct ibv_srq_init_attr wanted = {.attr = {.max_wr = 4, .max_sge = 1}};
#ifdef PORTABLE
  if (nic.attr.max_srq != 0) attr.srq = ibv_create_srq(nic.pd, &wanted);
#else
  attr.srq = ibv_create_srq(nic.pd, &wanted);
  expect(attr.srq != NULL, "ibv_create_srq");
#endif
  expect(ibv_create_qp(nic.pd, &attr) != NULL, "ibv_create_qp");
  return 0;
}
