// A program with a mistake that ends by its argument: kill, _exit, abort, wait (for the end
// of its input); or repeats a mistake a
// million times; or prints what the man pages leave undefined.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "pair.h"

static void repeat(struct pair* p) {
  struct ibv_sge sges[2] = {whole(&p->a), whole(&p->a)};
  struct ibv_recv_wr wr = {.sg_list = sges, .num_sge = 2};
  struct ibv_recv_wr* bad;
  for (int i = 0; i < 1000000; ++i) check(ibv_post_recv(p->a.qp, &wr, &bad) == EINVAL, "two SGEs");
}

// A flushed completion, and errno after a post that was refused.
static void print_undefined(struct pair* p) {
  check(post_receive(&p->a, 7) == 0, "ibv_post_recv");
  move_to(p->a.qp, IBV_QPS_ERR);
  struct ibv_wc wc = next_completion(p->a.cq);
  printf("%d %d %s\n", (int)wc.wr_id, wc.qp_num == p->a.qp->qp_num, ibv_wc_status_str(wc.status));
  printf("%x %x %x %x\n", wc.opcode, wc.byte_len, wc.src_qp, wc.sl);
  move_to(p->a.qp, IBV_QPS_RESET);
  errno = 0;
  printf("%d ", post_receive(&p->a, 7) == EINVAL);
  printf("%d\n", errno);
}

int main(int argc, char** argv) {
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  check(argc == 2, "one argument");
  if (strcmp(argv[1], "repeat") == 0) {
    repeat(&p);
    return 0;
  }
  if (strcmp(argv[1], "undefined") == 0) {
    print_undefined(&p);
    return 0;
  }
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
  check(ibv_dereg_mr(p.b.mr) == 0, "ibv_dereg_mr");
  if (strcmp(argv[1], "wait") == 0) check(getchar() == EOF, "end of standard input");
  if (strcmp(argv[1], "kill") == 0) raise(SIGKILL);
  if (strcmp(argv[1], "abort") == 0) abort();
  _exit(3);
}
