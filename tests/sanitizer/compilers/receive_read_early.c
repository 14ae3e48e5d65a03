// For AddressSanitizer: the buffer of a receive is read before its completion was polled. RIGHT: no
// access but right ones, to memory that was poisoned before, too.
#include <sanitizer/asan_interface.h>

#include "pair.h"

static struct pair p;

static int post_receive_at(const char* address, uint32_t length, uint64_t wr_id) {
  struct ibv_sge sge = {(uintptr_t)address, length, p.b.mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  return ibv_post_recv(p.b.qp, &wr, &bad);
}

static void send_and_take(void) {
  check(post_send(&p.a, 1, 1) == 0, "ibv_post_send");
  next_success(p.a.cq);
  next_success(p.b.cq);
}

#ifdef RIGHT
static void check_poisoned(const char* address, int is_poisoned, const char* what) {
  check(__asan_address_is_poisoned(address) == is_poisoned, what);
}

// The bytes before and behind a receive are the program's, in the same granule of 8 bytes, too.
static void neighbors(void) {
  volatile char* const bytes = p.b.buffer;
  check(post_receive_at(p.b.buffer + 64 + 3, 21, 1) == 0, "ibv_post_recv");
  for (int i = 0; i < 3; ++i) bytes[64 + i] = 1;
  for (int i = 64 + 24; i < 64 + 40; ++i) bytes[i] = 1;
  check_poisoned(p.b.buffer + 64 + 10, 1, "a receive");
  send_and_take();
  check_poisoned(p.b.buffer + 64 + 10, 0, "a received message");
}

// Two receives have the same bytes: those are the program's when it has both completions.
static void twice(void) {
  check(post_receive_at(p.b.buffer + 256, 64, 1) == 0, "ibv_post_recv");
  check(post_receive_at(p.b.buffer + 288, 64, 2) == 0, "ibv_post_recv");
  send_and_take();
  check_poisoned(p.b.buffer + 256, 0, "the first alone");
  check_poisoned(p.b.buffer + 300, 1, "both");
  send_and_take();
  for (int i = 256; i < 352; ++i) check_poisoned(p.b.buffer + i, 0, "none");
}

// What the program itself has poisoned stays so.
static void poisoned_before(void) {
  ASAN_POISON_MEMORY_REGION(p.b.buffer + 1024 + 16, 16);
  check(post_receive_at(p.b.buffer + 1024, 64, 1) == 0, "ibv_post_recv");
  send_and_take();
  check_poisoned(p.b.buffer + 1024 + 15, 0, "before");
  check_poisoned(p.b.buffer + 1024 + 16, 1, "the program's own");
  check_poisoned(p.b.buffer + 1024 + 31, 1, "the program's own");
  check_poisoned(p.b.buffer + 1024 + 32, 0, "behind");
  ASAN_UNPOISON_MEMORY_REGION(p.b.buffer + 1024 + 16, 16);
}

// The end of a heap block of 60 bytes is in the middle of a granule.
static void heap_block(void) {
  char* const block = malloc(60);
  struct ibv_mr* mr = ibv_reg_mr(p.pd, block, 60, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_sge sge = {(uintptr_t)block, 60, mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  check(ibv_post_recv(p.b.qp, &wr, &bad) == 0, "ibv_post_recv");
  check_poisoned(block + 59, 1, "the last byte");
  send_and_take();
  check_poisoned(block + 59, 0, "the last byte");
  check_poisoned(block + 60, 1, "the redzone");
  check(ibv_dereg_mr(mr) == 0, "ibv_dereg_mr");
  free(block);
}

// Flushed by ERR, and gone with a RESET and with the QP.
static void ends_otherwise(void) {
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
  move_to(p.b.qp, IBV_QPS_ERR);
  check_poisoned(p.b.buffer, 1, "not polled yet");
  check(next_completion(p.b.cq).status == IBV_WC_WR_FLUSH_ERR, "flushed");
  check_poisoned(p.b.buffer, 0, "flushed");
  move_to(p.b.qp, IBV_QPS_RESET);
  connect_qp(p.b.qp, p.a.qp->qp_num);
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
  move_to(p.b.qp, IBV_QPS_RESET);
  check_poisoned(p.b.buffer, 0, "after RESET");
  connect_qp(p.b.qp, p.a.qp->qp_num);
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
  check(ibv_destroy_qp(p.b.qp) == 0, "ibv_destroy_qp");
  p.b.qp = NULL;
  check_poisoned(p.b.buffer, 0, "without the QP");
}
#endif

int main(void) {
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
#ifdef RIGHT
  neighbors();
  twice();
  poisoned_before();
  heap_block();
  ends_otherwise();
#else
  check(post_receive_at(p.b.buffer, 64, 1) == 0, "ibv_post_recv");
  check(post_send(&p.a, 1, 1) == 0, "ibv_post_send");
  next_success(p.a.cq);                     // the message has arrived
  volatile char* const buffer = p.b.buffer;
  check(buffer[3] == 0, "what was sent");   // wrong
  next_success(p.b.cq);
#endif
  close_pair(&p);
  return 0;
}
