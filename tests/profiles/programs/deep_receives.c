// hellas-ai/thunderbolt-ibverbs#41: 128 receives were granted, but the device refuses the 64th.
// PORTABLE: the program posts as many receives as the device accepts.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  struct ibv_qp_init_attr attr = plain_qp(&nic, IBV_QPT_UC);
  attr.cap.max_recv_wr = 128;
  struct ibv_qp* qp = ibv_create_qp(nic.pd, &attr);
  if (qp == NULL) {  // without UC, the program uses RC
    attr.qp_type = IBV_QPT_RC;
    qp = ibv_create_qp(nic.pd, &attr);
  }
  expect(qp != NULL, "ibv_create_qp");
  connect_to(&nic, qp, qp->qp_num);
  for (int i = 0; i < 128; ++i) {
    const int error = post_receive(&nic, qp);
    if (error == 0) continue;
#ifdef PORTABLE
    break;
#else
    fprintf(stderr, "receive %d: ", i + 1);
    fail("ibv_post_recv", error);
#endif
  }
  return 0;
}
