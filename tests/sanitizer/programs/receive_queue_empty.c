// A message arrives before a receive was posted. RIGHT: the receive is there first.
#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  rnr_retry = 1;
  connect_pair(&p);
#ifdef RIGHT
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
#endif
  check(post_send(&p.a, 2, 1) == 0, "ibv_post_send");
#ifdef RIGHT
  next_success(p.a.cq);
  next_success(p.b.cq);
#else
  check(next_completion(p.a.cq).status == IBV_WC_RNR_RETRY_EXC_ERR, "too many RNR NAKs");
#endif
  close_pair(&p);
  return 0;
}
