// bnxt_re's provider refuses too many SGEs and does not touch errno: a program that clears it first
// and reads it afterwards takes the NULL for a success. PORTABLE: it looks at the result.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  struct ibv_qp_init_attr attr = plain_qp(&nic, IBV_QPT_RC);
  attr.cap.max_send_sge = 8;
  attr.cap.max_recv_sge = 1;
  errno = 0;
  struct ibv_qp* qp = ibv_create_qp(nic.pd, &attr);
#ifdef PORTABLE
  (void)qp;  // NULL is an answer, whatever errno is
#else
  if (errno != 0) return 0;  // an error that it is ready for
  expect(qp != NULL, "ibv_create_qp returned NULL and left errno 0");
#endif
  return 0;
}
