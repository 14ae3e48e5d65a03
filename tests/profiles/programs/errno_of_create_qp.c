// bnxt_re's provider refuses too many SGEs without setting errno. A program that clears errno
// before the call and reads it afterwards takes the NULL for a success. PORTABLE: the program
// checks the result.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  struct ibv_qp_init_attr attr = plain_qp(&nic, IBV_QPT_RC);
  attr.cap.max_send_sge = 8;
  attr.cap.max_recv_sge = 1;
  errno = 0;
  struct ibv_qp* qp = ibv_create_qp(nic.pd, &attr);
#ifdef PORTABLE
  (void)qp;  // NULL is a failure, whatever errno is
#else
  if (errno != 0) return 0;  // the program handles this error
  expect(qp != NULL, "ibv_create_qp returned NULL and left errno 0");
#endif
  return 0;
}
