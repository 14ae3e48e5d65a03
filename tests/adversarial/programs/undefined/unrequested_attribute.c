// A program asks ibv_query_qp() for the state, and uses the peer's number, too. ibv_query_qp(3):
// "attr_mask is a hint that specifies the minimum list of attributes to retrieve."
// RIGHT: it asks for both.
#include "connected.h"

int main(void) {
  struct pair pair = connect_pair();
#ifdef RIGHT
  const int mask = IBV_QP_STATE | IBV_QP_DEST_QPN;
#else
  const int mask = IBV_QP_STATE;
#endif
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  expect(ibv_query_qp(pair.a.qp, &attr, mask, &init) == 0, "ibv_query_qp");
  expect(attr.qp_state == IBV_QPS_RTS, "the state");
  expect(attr.dest_qp_num == pair.b.qp->qp_num, "an attribute that was not asked for");
  return 0;
}
