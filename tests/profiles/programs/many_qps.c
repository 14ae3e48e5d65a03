// ml-explore/mlx#3162, #4209: the program creates a QP for each of 16 peers; Apple's device has 10
// QPs, and returns EBUSY. PORTABLE: the program creates at most max_qp QPs, and shares them.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  int peers = 16;
#ifdef PORTABLE
  if (peers > nic.attr.max_qp) peers = nic.attr.max_qp;
#endif
  for (int i = 0; i < peers; ++i) {
    struct ibv_qp_init_attr attr = plain_qp(&nic, IBV_QPT_RC);
    if (ibv_create_qp(nic.pd, &attr) != NULL) continue;
    attr.qp_type = IBV_QPT_UC;
    if (errno == EOPNOTSUPP && ibv_create_qp(nic.pd, &attr) != NULL) continue;
    attr.qp_type = IBV_QPT_UD;
    if (errno == EOPNOTSUPP && ibv_create_qp(nic.pd, &attr) != NULL) continue;
    fprintf(stderr, "QP %d: ", i + 1);
    fail("ibv_create_qp", errno);
  }
  return 0;
}
