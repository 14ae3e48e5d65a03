// The buffer of a send is changed, and the program ends by _exit(2) before it has polled the
// completion. RIGHT: after the poll.
#include <unistd.h>

#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
  check(post_send(&p.a, 1, 1) == 0, "ibv_post_send");
#ifdef RIGHT
  next_success(p.a.cq);
  p.a.buffer[3] = 7;
  close_pair(&p);
#else
  p.a.buffer[3] = 7;
#endif
  _exit(0);
}
