// A send is posted to a QP in INIT, and a QP goes from RESET to RTS. RIGHT: receives in INIT.
#include <errno.h>

#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  const int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  check(ibv_modify_qp(p.a.qp, &attr, mask) == 0, "to INIT");
#ifdef RIGHT
  check(post_receive(&p.a, 1) == 0, "ibv_post_recv");
#else
  check(post_send(&p.a, 1, 1) == EINVAL, "ibv_post_send");
  attr.qp_state = IBV_QPS_RTS;
  check(ibv_modify_qp(p.b.qp, &attr, IBV_QP_STATE) == EINVAL, "to RTS");
#endif
  close_pair(&p);
  return 0;
}
