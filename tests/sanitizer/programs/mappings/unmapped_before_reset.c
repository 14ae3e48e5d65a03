// Memory that a posted receive names is unmapped, and then the QP is reset. RIGHT: the QP is reset
// first, which ends the use of the memory.
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
  struct ibv_sge sge = {(uintptr_t)memory, 4096, mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  check(ibv_post_recv(p.b.qp, &wr, &bad) == 0, "ibv_post_recv");
#ifdef RIGHT
  move_to(p.b.qp, IBV_QPS_RESET);
  check(munmap(memory, 8192) == 0, "munmap");
#else
  check(munmap(memory, 8192) == 0, "munmap");  // wrong
  move_to(p.b.qp, IBV_QPS_RESET);
#endif
  check(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
  close_pair(&p);
  return 0;
}
