// Pages of 24 regions are unmapped, two of each, and a receive then names the first page that was
// unmapped of region 20. RIGHT: it names the page between the two.
#include <sys/mman.h>

#include "pair.h"

enum { REGIONS = 24, PAGE = 4096, PAGES = 8 };

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  char* memory[REGIONS];
  struct ibv_mr* mr[REGIONS];
  for (int i = 0; i < REGIONS; ++i) {
    memory[i] =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(memory[i] != MAP_FAILED, "mmap");
    mr[i] = ibv_reg_mr(p.pd, memory[i], PAGES * PAGE, IBV_ACCESS_LOCAL_WRITE);
    check(mr[i] != NULL, "ibv_reg_mr");
  }
  for (int i = 0; i < REGIONS; ++i) {
    check(munmap(memory[i] + 1 * PAGE, PAGE) == 0, "munmap");
    check(munmap(memory[i] + 5 * PAGE, PAGE) == 0, "munmap");
  }
#ifdef RIGHT
  const int page = 3;
#else
  const int page = 1;
#endif
  struct ibv_sge sge = {(uintptr_t)memory[20] + page * PAGE, PAGE, mr[20]->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  check(ibv_post_recv(p.b.qp, &wr, &bad) == 0, "ibv_post_recv");  // wrong
  move_to(p.b.qp, IBV_QPS_RESET);
  for (int i = 0; i < REGIONS; ++i) check(ibv_dereg_mr(mr[i]) == 0, "ibv_dereg_mr");
  close_pair(&p);
  return 0;
}
