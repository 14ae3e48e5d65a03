// Memory of a region is unmapped, and a receive then names it. RIGHT: the region goes first.
#include <sys/mman.h>

#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  void* memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(memory != MAP_FAILED, "mmap");
  struct ibv_mr* mr = ibv_reg_mr(p.pd, memory, 8192, IBV_ACCESS_LOCAL_WRITE);
  check(mr != NULL, "ibv_reg_mr");
#ifdef RIGHT
  check(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
  check(munmap(memory, 8192) == 0, "munmap");
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
#else
  check(munmap(memory, 8192) == 0, "munmap");
  struct ibv_sge sge = {(uintptr_t)memory, 4096, mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  check(ibv_post_recv(p.b.qp, &wr, &bad) == 0, "ibv_post_recv");  // wrong
  move_to(p.b.qp, IBV_QPS_RESET);
  check(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
#endif
  close_pair(&p);
  return 0;
}
