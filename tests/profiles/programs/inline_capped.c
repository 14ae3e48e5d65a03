// hns grants less inline data than was requested, and reports that only in the granted value
// (linux-rdma/perftest#178). PORTABLE: the program sends inline only what fits the grant.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  struct ibv_qp_init_attr attr = plain_qp(&nic, IBV_QPT_RC);
  attr.cap.max_inline_data = 2048;
  struct ibv_qp* qp = ibv_create_qp(nic.pd, &attr);
  uint32_t size = 2048;
#ifdef PORTABLE
  if (qp == NULL) {
    attr = plain_qp(&nic, IBV_QPT_RC);
    qp = ibv_create_qp(nic.pd, &attr);
  }
  if (size > attr.cap.max_inline_data) size = attr.cap.max_inline_data;
#else
  if (qp == NULL) return 0;  // the program handles this error
#endif
  expect(qp != NULL, "ibv_create_qp");
  struct ibv_qp_init_attr other = plain_qp(&nic, IBV_QPT_RC);
  struct ibv_qp* peer = ibv_create_qp(nic.pd, &other);
  expect(peer != NULL, "ibv_create_qp");
  connect_to(&nic, qp, peer->qp_num);
  connect_to(&nic, peer, qp->qp_num);
  expect(post_receive(&nic, peer) == 0, "ibv_post_recv");
  const int error = post_bytes(&nic, qp, IBV_WR_SEND, size, size != 0 ? IBV_SEND_INLINE : 0);
  if (error != 0) fail("ibv_post_send inline", error);
  for (int i = 0; i < 2; ++i) expect(next_completion(&nic).status == IBV_WC_SUCCESS, "completion");
  return 0;
}
