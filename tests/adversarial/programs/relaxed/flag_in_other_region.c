// Data is written to a region with relaxed ordering, and then a flag to one without.
// RIGHT: the flag is set by FETCH_ADD: "relaxed ordered operations will also not bypass atomic
// operations" (ibv_reg_mr(3)).
#include "connected.h"

enum { SIZE = 2048, ROUNDS = 4 };

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr *from = make_region(SIZE, 0), *old = make_region(8, 0);
  for (int i = 0; i < ROUNDS; ++i) {
    struct ibv_mr *to = make_region(SIZE, IBV_ACCESS_RELAXED_ORDERING), *flag = make_region(8, 0);
    memset(from->addr, i + 1, SIZE);
    post(&pair.a,
         (struct request){.opcode = IBV_WR_RDMA_WRITE, .from = from, .to = to, .size = SIZE});
#ifdef RIGHT
    post(&pair.a, (struct request){.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                   .from = old,
                                   .to = flag,
                                   .size = 8,
                                   .value = 1,
                                   .flags = IBV_SEND_SIGNALED});
#else
    (void)old;
    post(&pair.a, (struct request){.opcode = IBV_WR_RDMA_WRITE,
                                   .from = from,
                                   .to = flag,
                                   .size = 8,
                                   .flags = IBV_SEND_SIGNALED});
#endif
    wait_for_byte(flag->addr);
    const uint8_t* data = to->addr;
    for (int j = 0; j < SIZE; ++j) expect(data[j] == i + 1, "the flag came before the data");
    wait_for(pair.a.send_cq);
  }
  return 0;
}
