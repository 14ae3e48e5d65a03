// A program goes by errno to learn why a verb failed that returns its error number. ibv_modify_qp(3):
// "returns 0 on success, or the value of errno on failure".
// RIGHT: it goes by the result.
#include "connected.h"

#include <errno.h>

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
  const int result = ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE);  // from RTS
#ifdef RIGHT
  const int reason = result;
#else
  (void)result;
  const int reason = errno;
#endif
  expect(reason == EINVAL, "errno is not the error number");
  return 0;
}
