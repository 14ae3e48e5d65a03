// For MemorySanitizer and valgrind: bytes of a receive buffer that the message did not reach decide
// something. RIGHT: those that it reached, of a READ, of an atomic, and what a peer may write.
#include "pair.h"

#ifdef __has_include
#if __has_include(<sanitizer/msan_interface.h>) && defined(__clang__)
#include <sanitizer/msan_interface.h>
#define NOT_INITIALIZED(memory, size) __msan_allocated_memory(memory, size)
#endif
#endif
#ifndef NOT_INITIALIZED
#define NOT_INITIALIZED(memory, size) (void)0
#endif

static struct pair p;

struct memory {
  char* bytes;
  struct ibv_mr* mr;
};

// Fresh from malloc(), whose memory is not initialized.
static struct memory fresh(int access) {
  struct memory memory = {.bytes = malloc(64)};
  NOT_INITIALIZED(memory.bytes, 64);
  memory.mr = ibv_reg_mr(p.pd, memory.bytes, 64, access);
  check(memory.mr != NULL, "ibv_reg_mr");
  return memory;
}

static void let_go(struct memory memory) {
  check(ibv_dereg_mr(memory.mr) == 0, "ibv_dereg_mr");
  free(memory.bytes);
}

static void receive(struct memory memory) {
  struct ibv_sge sge = {(uintptr_t)memory.bytes, 64, memory.mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  check(ibv_post_recv(p.b.qp, &wr, &bad) == 0, "ibv_post_recv");
  check(post_send(&p.a, 1, 1) == 0, "ibv_post_send");
  next_success(p.a.cq);
  next_success(p.b.cq);
}

#ifdef RIGHT
static void execute(struct memory memory, enum ibv_wr_opcode opcode, struct memory remote) {
  struct ibv_sge sge = {(uintptr_t)memory.bytes, 8, memory.mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = opcode,
                           .send_flags = IBV_SEND_SIGNALED,
                           .wr.atomic = {(uintptr_t)remote.bytes, 1, 2, remote.mr->rkey}};
  if (opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_RDMA_WRITE) {
    wr.wr.rdma.remote_addr = (uintptr_t)remote.bytes;
    wr.wr.rdma.rkey = remote.mr->rkey;
  }
  struct ibv_send_wr* bad;
  check(ibv_post_send(p.a.qp, &wr, &bad) == 0, "ibv_post_send");
  next_success(p.a.cq);
}
#endif

static void decide(const char* bytes, int at) {
  if (bytes[at] > 99) abort();  // wrong
}

int main(void) {
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  struct memory received = fresh(IBV_ACCESS_LOCAL_WRITE);
  receive(received);
#ifdef RIGHT
  for (int i = 0; i < 8; ++i) decide(received.bytes, i);
  struct memory remote = fresh(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                               IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
  memset(remote.bytes, 0, 8);
  const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
                                        IBV_WR_ATOMIC_CMP_AND_SWP};
  for (int i = 0; i < 3; ++i) {
    struct memory result = fresh(IBV_ACCESS_LOCAL_WRITE);
    execute(result, opcodes[i], remote);
    for (int byte = 0; byte < 8; ++byte) decide(result.bytes, byte);
    let_go(result);
  }
  struct memory written = fresh(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  execute(remote, IBV_WR_RDMA_WRITE, written);
  for (int byte = 0; byte < 8; ++byte) decide(written.bytes, byte);
  let_go(written);
  let_go(remote);
#else
  decide(received.bytes, 20);
#endif
  let_go(received);
  close_pair(&p);
  return 0;
}
