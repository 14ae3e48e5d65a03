// After ENOMEM the program posts again at once. RIGHT: it polls in between.
#include <errno.h>

#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){.max_recv_wr = 16});
  connect_pair(&p);
  for (int i = 0; i < 8; ++i) check(post_receive(&p.b, i) == 0, "ibv_post_recv");
  int polled = 0;
  for (int i = 0; i < 8; ++i) {
    while (post_send(&p.a, i, 1) == ENOMEM) {
#ifdef RIGHT
      next_success(p.a.cq);
      ++polled;
#else
      if (post_send(&p.a, i, 1) == 0) break;
      next_success(p.a.cq);
      ++polled;
#endif
    }
  }
  for (; polled < 8; ++polled) next_success(p.a.cq);
  close_pair(&p);
  return 0;
}
