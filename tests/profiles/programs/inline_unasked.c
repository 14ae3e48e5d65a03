// ROCm/mori#424: the program requests no inline data and sends 16 bytes inline, for which mlx5 has
// room. PORTABLE: the program checks the granted value.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  struct ibv_qp_init_attr attr = plain_qp(&nic, IBV_QPT_RC);
  struct ibv_qp* qp = ibv_create_qp(nic.pd, &attr);
  expect(qp != NULL, "ibv_create_qp");
  const uint32_t granted = attr.cap.max_inline_data;
  attr = plain_qp(&nic, IBV_QPT_RC);
  struct ibv_qp* peer = ibv_create_qp(nic.pd, &attr);
  expect(peer != NULL, "ibv_create_qp");
  connect_to(&nic, qp, peer->qp_num);
  connect_to(&nic, peer, qp->qp_num);
  expect(post_receive(&nic, peer) == 0, "ibv_post_recv");
  unsigned flags = IBV_SEND_INLINE;
#ifdef PORTABLE
  if (granted < 16) flags = 0;
#endif
  const int error = post_bytes(&nic, qp, IBV_WR_SEND, 16, flags);
  if (error != 0) {
    fprintf(stderr, "granted %u bytes; ", granted);
    fail("ibv_post_send of 16 bytes inline", error);
  }
  for (int i = 0; i < 2; ++i) expect(next_completion(&nic).status == IBV_WC_SUCCESS, "completion");
  return 0;
}
