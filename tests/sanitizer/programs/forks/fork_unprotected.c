// A process with registered memory forks. RIGHT: after ibv_fork_init().
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

int main(void) {
#ifdef RIGHT
  check(ibv_fork_init() == 0, "ibv_fork_init");
#endif
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  const pid_t child = fork();  // wrong
  check(child >= 0, "fork");
  if (child == 0) _exit(0);
  int status;
  check(waitpid(child, &status, 0) == child && status == 0, "waitpid");
  close_pair(&p);
  return 0;
}
