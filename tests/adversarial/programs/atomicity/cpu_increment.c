// A counter that peers increase by FETCH_ADD and the processor by an atomic instruction. The device
// has IBV_ATOMIC_HCA: its atomics are atomic among each other only.
// RIGHT: the owner uses FETCH_ADD too, through a QP to itself.
#include "connected.h"

enum { ROUNDS = 8 };

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr *counter = make_region(8, 0), *old = make_region(16, 0);
  const struct request add = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                              .from = old,
                              .to = counter,
                              .size = 8,
                              .value = 1,
                              .flags = IBV_SEND_SIGNALED};
  for (int i = 0; i < ROUNDS; ++i) {
    post(&pair.a, add);
    wait_for(pair.a.send_cq);
#ifdef RIGHT
    post(&pair.b, add);
    wait_for(pair.b.send_cq);
#else
    __atomic_fetch_add((uint64_t*)counter->addr, 1, __ATOMIC_SEQ_CST);
#endif
  }
  post(&pair.a, (struct request){.opcode = IBV_WR_RDMA_READ,
                                 .from = old,
                                 .to = counter,
                                 .size = 8,
                                 .flags = IBV_SEND_SIGNALED});
  wait_for(pair.a.send_cq);
  expect(load(old->addr) == 2 * ROUNDS, "an increment is lost");
  return 0;
}
