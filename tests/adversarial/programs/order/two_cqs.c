// Two QPs with a CQ each. A request of the first was posted before one of the second, so its
// completion "must be there" when the second one's is. Queues have no order among each other.
// RIGHT: the program waits for it.
#include "connected.h"

enum { ROUNDS = 4 };

int main(void) {
  struct pair first = connect_pair(), second = connect_pair();
  struct ibv_mr *from = make_region(8, 0), *to = make_region(16, 0);
  for (int i = 0; i < ROUNDS; ++i) {
    struct request write = {
        .opcode = IBV_WR_RDMA_WRITE, .from = from, .to = to, .size = 8, .flags = IBV_SEND_SIGNALED};
    post(&first.a, write);
    usleep(10);
    write.to_offset = 8;
    post(&second.a, write);
    wait_for(second.a.send_cq);
#ifdef RIGHT
    wait_for(first.a.send_cq);
#else
    struct ibv_wc wc;
    expect(ibv_poll_cq(first.a.send_cq, 1, &wc) == 1, "the older completion is not there");
#endif
  }
  return 0;
}
