// A program with a mistake that ends by its argument: kill, _exit, abort, wait (for the end of its
// input); or that repeats two mistakes, with "repeat N [M]"; or prints what the man pages leave
// undefined.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pair.h"

// The most memory that the process has had, in KiB (man proc_pid_status).
static long peak_memory(void) {
  FILE* file = fopen("/proc/self/status", "r");
  check(file != NULL, "/proc/self/status");
  char line[256];
  long peak = -1;
  while (peak < 0 && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "VmHWM: %ld", &peak) != 1) peak = -1;
  fclose(file);
  return peak;
}

static long size_of_findings(void) {
  char name[512];
  snprintf(name, sizeof name, "%s/log", getenv("ROCEMU_SANITIZER_DIR"));
  struct stat status;
  check(stat(name, &status) == 0, name);
  return status.st_size;
}

// Posts with too many SGEs.
static void repeat_refusals(struct pair* p, long times) {
  struct ibv_sge sges[2] = {whole(&p->a), whole(&p->a)};
  struct ibv_recv_wr wr = {.sg_list = sges, .num_sge = 2};
  struct ibv_recv_wr* bad;
  for (long i = 0; i < times; ++i)
    check(ibv_post_recv(p->a.qp, &wr, &bad) == EINVAL, "two SGEs");
}

// Posts to a QP that has failed.
static void repeat_posts(struct pair* p, long times) {
  for (long i = 0; i < times; ++i) {
    check(post_send(&p->a, 1, 1) == 0, "ibv_post_send");
    check(next_completion(p->a.cq).status != IBV_WC_SUCCESS, "an error");
  }
}

static void fail(struct side* side) {
  struct ibv_sge foreign = whole(side);
  foreign.lkey ^= 0xff;
  struct ibv_send_wr wr = {.sg_list = &foreign, .num_sge = 1, .opcode = IBV_WR_SEND};
  wr.send_flags = IBV_SEND_SIGNALED;
  struct ibv_send_wr* bad;
  check(ibv_post_send(side->qp, &wr, &bad) == 0, "ibv_post_send");
  check(next_completion(side->cq).status == IBV_WC_LOC_PROT_ERR, "a protection error");
}

// Prints by how much its memory (KiB) and the file of findings (bytes) grow by repetitions.
static void measure(struct pair* p, long refusals, long posts) {
  if (posts > 0) fail(&p->a);
  long memory = 0, findings = 0;
  for (int round = 0; round < 2; ++round) {
    memory = peak_memory();
    findings = size_of_findings();
    repeat_refusals(p, round == 0 ? 10 : refusals - 10);
    repeat_posts(p, posts == 0 ? 0 : round == 0 ? 10 : posts - 10);
  }
  printf("%ld %ld\n", peak_memory() - memory, size_of_findings() - findings);
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
  check(argc >= 2, "an argument");
  if (strcmp(argv[1], "repeat") == 0) {
    check(argc >= 3, "a number");
    measure(&p, atol(argv[2]), argc > 3 ? atol(argv[3]) : 0);
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
