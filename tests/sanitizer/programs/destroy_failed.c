// A PD is deallocated before its users. RIGHT: after them.
#include <errno.h>

#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
#ifndef RIGHT
  check(ibv_dealloc_pd(p.pd) == EBUSY, "ibv_dealloc_pd");  // wrong
#endif
  close_pair(&p);
  return 0;
}
