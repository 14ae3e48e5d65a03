// spdk/spdk#3926: the device advertises MEM_MGT_EXTENSIONS, so the program answers with
// SEND_WITH_INV. PORTABLE: if the first SEND_WITH_INV fails, the program uses SEND, and lets the
// peer invalidate.
#include "device.h"

static struct ibv_qp* make(const struct nic* nic) {
  struct ibv_qp_init_attr attr = plain_qp(nic, IBV_QPT_RC);
  struct ibv_qp* qp = ibv_create_qp(nic->pd, &attr);
  expect(qp != NULL, "ibv_create_qp");
  return qp;
}

// Returns the status of the send's completion, or -1 if the send cannot be posted.
static int send_once(const struct nic* nic, enum ibv_wr_opcode opcode) {
  struct ibv_qp *qp = make(nic), *peer = make(nic);
  connect_to(nic, qp, peer->qp_num);
  connect_to(nic, peer, qp->qp_num);
  expect(post_receive(nic, peer) == 0, "ibv_post_recv");
  if (post_bytes(nic, qp, opcode, 8, 0) != 0) return -1;
  struct ibv_wc wc;
  do {
    wc = next_completion(nic);
  } while (wc.qp_num != qp->qp_num);
  if (wc.status != IBV_WC_SUCCESS)
    fprintf(stderr, "%s, vendor_err %u\n", ibv_wc_status_str(wc.status), wc.vendor_err);
  return (int)wc.status;
}

int main(void) {
  struct nic nic = open_nic();
  if ((nic.attr.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS) == 0) return 0;
  // There is no window to invalidate. On a NIC that has the opcode, the responder detects that.
  const int status = send_once(&nic, IBV_WR_SEND_WITH_INV);
  const int is_local_fault = status == -1 || status == IBV_WC_LOC_QP_OP_ERR;
#ifdef PORTABLE
  if (is_local_fault) expect(send_once(&nic, IBV_WR_SEND) == IBV_WC_SUCCESS, "SEND");
#else
  expect(!is_local_fault, "SEND_WITH_INV");
#endif
  return 0;
}
