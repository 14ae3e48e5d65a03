// Four receives are posted whose CQ has room for two. RIGHT: never more than two are outstanding.
#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){.cqe = 2});
  connect_pair(&p);
#ifdef RIGHT
  for (int i = 0; i < 8; ++i) {
    check(post_receive(&p.b, i) == 0, "ibv_post_recv");
    check(post_send(&p.a, i, 1) == 0, "ibv_post_send");
    next_success(p.a.cq);
    next_success(p.b.cq);
  }
#else
  for (int i = 0; i < 4; ++i) check(post_receive(&p.b, i) == 0, "ibv_post_recv");
#endif
  close_pair(&p);
  return 0;
}
