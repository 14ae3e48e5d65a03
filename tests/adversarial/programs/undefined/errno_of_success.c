// A program sets errno to 0, calls several verbs, and looks at errno in the end. errno(3): after a
// call that succeeded it is undefined.
// RIGHT: it looks at the results.
#include "connected.h"

#include <errno.h>

int main(void) {
  struct pair pair = connect_pair();
  errno = 0;
  struct ibv_qp_attr attr;
  struct ibv_qp_init_attr init;
  const int result = ibv_query_qp(pair.a.qp, &attr, IBV_QP_STATE, &init);
#ifdef RIGHT
  const int fails = result != 0;
#else
  (void)result;
  const int fails = errno != 0;
#endif
  expect(!fails, "errno says nothing after a call that succeeded");
  return 0;
}
