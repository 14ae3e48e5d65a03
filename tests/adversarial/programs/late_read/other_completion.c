// Two QPs send out of one buffer, first one and then the other. When the second one's message is
// complete, the buffer is filled again.
// RIGHT: after the completions of both.
#include "connected.h"

enum { SIZE = 4096, MESSAGES = 4 };

int main(void) {
  struct pair first = connect_pair(), second = connect_pair();
  struct ibv_mr* from = make_region(SIZE, 0);
  struct ibv_mr *to_first = make_region(SIZE, 0), *to_second = make_region(SIZE, 0);
  for (int i = 1; i <= MESSAGES; ++i) {
    post_receive(&first.b, to_first, SIZE);
    post_receive(&second.b, to_second, SIZE);
    memset(from->addr, i, SIZE);
    const struct request send = {
        .opcode = IBV_WR_SEND, .from = from, .size = SIZE, .flags = IBV_SEND_SIGNALED};
    post(&first.a, send);
    post(&second.a, send);
    wait_for(second.a.send_cq);
#ifdef RIGHT
    wait_for(first.a.send_cq);
#endif
    memset(from->addr, 0xff, SIZE);
    wait_for(first.b.recv_cq);
    wait_for(second.b.recv_cq);
    const uint8_t* data = to_first->addr;
    for (int j = 0; j < SIZE; ++j) expect(data[j] == i, "the first QP sent what came after it");
  }
  return 0;
}
