// The program sends its L_Key to the peer, as gloo's transport does. On most NICs, L_Keys and
// R_Keys are equal. PORTABLE: the program sends the R_Key (IBTA vol 1, 10.6.3.1).
#include "device.h"

#ifdef PORTABLE
#define KEY rkey
#else
#define KEY lkey
#endif

static struct ibv_qp* make(const struct nic* nic) {
  struct ibv_qp_init_attr attr = plain_qp(nic, IBV_QPT_RC);
  struct ibv_qp* qp = ibv_create_qp(nic->pd, &attr);
  expect(qp != NULL, "ibv_create_qp");
  return qp;
}

int main(void) {
  struct nic nic = open_nic();
  struct ibv_qp *qp = make(&nic), *peer = make(&nic);
  connect_to(&nic, qp, peer->qp_num);
  connect_to(&nic, peer, qp->qp_num);
  struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  expect(ibv_modify_qp(peer, &attr, IBV_QP_ACCESS_FLAGS) == 0, "ibv_modify_qp of the access flags");
  char target[8] = "";
  struct ibv_mr* mr =
      ibv_reg_mr(nic.pd, target, sizeof target, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  expect(mr != NULL, "ibv_reg_mr");
  memcpy(nic.memory, "written", sizeof target);
  struct ibv_sge sge = {(uintptr_t)nic.memory, sizeof target, nic.mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_RDMA_WRITE,
                           .send_flags = IBV_SEND_SIGNALED,
                           .wr.rdma = {.remote_addr = (uintptr_t)target, .rkey = mr->KEY}};
  struct ibv_send_wr* bad;
  expect(ibv_post_send(qp, &wr, &bad) == 0, "ibv_post_send");
  const struct ibv_wc wc = next_completion(&nic);
  if (wc.status != IBV_WC_SUCCESS) {
    fprintf(stderr, "failed: the WRITE completed with %s\n", ibv_wc_status_str(wc.status));
    return 1;
  }
  expect(strcmp(target, "written") == 0, "the WRITE");
  return 0;
}
