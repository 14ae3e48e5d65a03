// Peers count events by FETCH_ADD, and the processor takes all of them by an exchange with 0.
// RIGHT: the processor never writes the counter, and remembers how much of it it has taken.
#include "connected.h"

enum { ROUNDS = 8 };

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr *counter = make_region(8, 0), *old = make_region(8, 0);
  struct ibv_mr* last = make_region(8, 0);
  uint64_t taken = 0;
  for (int i = 0; i < ROUNDS; ++i) {
    post(&pair.a, (struct request){.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                   .from = old,
                                   .to = counter,
                                   .size = 8,
                                   .value = 1,
                                   .flags = IBV_SEND_SIGNALED});
    wait_for(pair.a.send_cq);
#ifndef RIGHT
    taken += __atomic_exchange_n((uint64_t*)counter->addr, 0, __ATOMIC_SEQ_CST);
#endif
  }
  post_receive(&pair.b, last, 8);  // what was added is there when this comes
  post(&pair.a, (struct request){.opcode = IBV_WR_SEND, .from = old, .size = 8});
  wait_for(pair.b.recv_cq);
  taken += load(counter->addr);
  expect(taken == ROUNDS, "events are lost, or counted twice");
  return 0;
}
