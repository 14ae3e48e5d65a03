// ggml-org/llama.cpp#22111, after the fix: if the QP cannot be created, the program silently uses
// TCP. PORTABLE: the program requests no inline data.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  struct ibv_qp_init_attr attr = plain_qp(&nic, IBV_QPT_RC);
#ifndef PORTABLE
  attr.cap.max_inline_data = 256;
#endif
  struct ibv_qp* qp = ibv_create_qp(nic.pd, &attr);
  if (qp == NULL) return 0;  // TCP
  connect_to(&nic, qp, qp->qp_num);
  expect(post_receive(&nic, qp) == 0, "ibv_post_recv");
  expect(post_bytes(&nic, qp, IBV_WR_SEND, 8, 0) == 0, "ibv_post_send");
  for (int i = 0; i < 2; ++i) expect(next_completion(&nic).status == IBV_WC_SUCCESS, "completion");
  return 0;
}
