// A process forks with registered memory that becomes copy-on-write. RIGHT: it shares the memory
// with the child, or withholds it from the child as ibv_fork_init() does (madvise(2),
// MADV_DONTFORK).
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

static void* map(int flag) {
  void* memory = mmap(NULL, BUFFER_SIZE, PROT_READ | PROT_WRITE, flag | MAP_ANONYMOUS, -1, 0);
  check(memory != MAP_FAILED, "mmap");
  return memory;
}

int main(void) {
  struct ibv_context* context = open_first_device();
  struct ibv_pd* pd = ibv_alloc_pd(context);
  check(pd != NULL, "ibv_alloc_pd");
  void* memory[] = {map(MAP_SHARED), map(MAP_PRIVATE)};
#ifdef RIGHT
  check(madvise(memory[1], BUFFER_SIZE, MADV_DONTFORK) == 0, "madvise");
#endif
  struct ibv_mr* mr[2];
  for (int i = 0; i < 2; ++i) {
    mr[i] = ibv_reg_mr(pd, memory[i], BUFFER_SIZE, IBV_ACCESS_LOCAL_WRITE);
    check(mr[i] != NULL, "ibv_reg_mr");
  }
  const pid_t child = fork();  // wrong
  check(child >= 0, "fork");
  if (child == 0) _exit(0);
  int status;
  check(waitpid(child, &status, 0) == child && status == 0, "waitpid");
  for (int i = 0; i < 2; ++i) check(ibv_dereg_mr(mr[i]) == 0, "ibv_dereg_mr");
  check(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0, "the end");
  return 0;
}
