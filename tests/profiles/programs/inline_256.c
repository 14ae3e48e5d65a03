// ggml-org/llama.cpp#22111: the program needs 256 bytes of inline data, which some devices do not
// have. PORTABLE: the program requests less until it gets a QP, and sends inline only what fits the
// grant.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  struct ibv_qp_init_attr attr = plain_qp(&nic, IBV_QPT_RC);
  attr.cap.max_inline_data = 256;
  struct ibv_qp* qp = ibv_create_qp(nic.pd, &attr);
#ifdef PORTABLE
  for (uint32_t asked = 128; qp == NULL; asked /= 2) {
    attr = plain_qp(&nic, attr.qp_type);
    attr.cap.max_inline_data = asked;
    qp = ibv_create_qp(nic.pd, &attr);
    if (asked == 0) break;
  }
#endif
  expect(qp != NULL, "ibv_create_qp with 256 bytes of inline data");
  struct ibv_qp* peer;
  attr = plain_qp(&nic, qp->qp_type);
  peer = ibv_create_qp(nic.pd, &attr);
  expect(peer != NULL, "ibv_create_qp");
  struct ibv_qp_attr now;
  struct ibv_qp_init_attr made;
  expect(ibv_query_qp(qp, &now, IBV_QP_CAP, &made) == 0, "ibv_query_qp");
  connect_to(&nic, qp, peer->qp_num);
  connect_to(&nic, peer, qp->qp_num);
  expect(post_receive(&nic, peer) == 0, "ibv_post_recv");
  const uint32_t size = 200;
#ifdef PORTABLE
  const unsigned flags = size <= made.cap.max_inline_data ? IBV_SEND_INLINE : 0;
#else
  const unsigned flags = IBV_SEND_INLINE;
#endif
  const int error = post_bytes(&nic, qp, IBV_WR_SEND, size, flags);
  if (error != 0) fail("ibv_post_send", error);
  for (int i = 0; i < 2; ++i) expect(next_completion(&nic).status == IBV_WC_SUCCESS, "completion");
  return 0;
}
