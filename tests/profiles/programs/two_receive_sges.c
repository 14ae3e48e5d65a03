// erdma receives into one SGE; the program has one for a header and one for a body. PORTABLE: the
// program queries the device, and receives both into one buffer.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  struct ibv_qp_init_attr attr = plain_qp(&nic, IBV_QPT_RC);
  attr.cap.max_recv_sge = 2;
#ifdef PORTABLE
  if (nic.attr.max_sge < 2) attr.cap.max_recv_sge = 1;
#endif
  expect(ibv_create_qp(nic.pd, &attr) != NULL, "ibv_create_qp with two receive SGEs");
  return 0;
}
