// Memory of a region is replaced and registered again, as by a cache of registrations, which
// deregisters the first region later. The program posts with the key of the first region. RIGHT:
// with that of the second, whose pages are those that the program sees.
#include <sys/mman.h>

#include "pair.h"

static void* map(void* at) {
  const int fixed = at != NULL ? MAP_FIXED : 0;
  void* memory = mmap(at, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
  check(memory != MAP_FAILED, "mmap");
  return memory;
}

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  void* memory = map(NULL);
  struct ibv_mr* first = ibv_reg_mr(p.pd, memory, 8192, IBV_ACCESS_LOCAL_WRITE);
  check(first != NULL, "ibv_reg_mr");
  check(munmap(memory, 8192) == 0, "munmap");
  map(memory);
  struct ibv_mr* second = ibv_reg_mr(p.pd, memory, 8192, IBV_ACCESS_LOCAL_WRITE);
  check(second != NULL, "ibv_reg_mr");
#ifdef RIGHT
  struct ibv_sge sge = {(uintptr_t)memory, 4096, second->lkey};
#else
  struct ibv_sge sge = {(uintptr_t)memory, 4096, first->lkey};
#endif
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  check(ibv_post_recv(p.b.qp, &wr, &bad) == 0, "ibv_post_recv");  // wrong
  move_to(p.b.qp, IBV_QPS_RESET);
  check(ibv_dereg_mr(first) == 0, "ibv_dereg_mr");
  check(ibv_dereg_mr(second) == 0, "ibv_dereg_mr");
  close_pair(&p);
  return 0;
}
