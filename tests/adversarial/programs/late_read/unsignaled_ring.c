// A sender has a ring of four buffers and sends without signal, at a pace at which the oldest one
// "must be gone". Nothing says that it is, but a completion.
// RIGHT: each fourth message is signaled, and its completion is waited for before the next round.
#include "connected.h"

enum { SIZE = 128, SLOTS = 4, MESSAGES = 16 };

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr* from = make_region(SIZE * SLOTS, 0);
  struct ibv_mr* to = make_region(SIZE * MESSAGES, 0);
  struct ibv_mr* last = make_region(8, 0);
  post_receive(&pair.b, last, 8);
  for (int i = 0; i < MESSAGES; ++i) {
    const int slot = i % SLOTS;
    memset((char*)from->addr + slot * SIZE, i + 1, SIZE);
    struct request write = {.opcode = IBV_WR_RDMA_WRITE,
                            .from = from,
                            .from_offset = (size_t)slot * SIZE,
                            .to = to,
                            .to_offset = (size_t)i * SIZE,
                            .size = SIZE};
#ifdef RIGHT
    if (slot == SLOTS - 1) write.flags = IBV_SEND_SIGNALED;
#endif
    post(&pair.a, write);
#ifdef RIGHT
    if (slot == SLOTS - 1) wait_for(pair.a.send_cq);
#endif
    usleep(2);
  }
  post(&pair.a, (struct request){.opcode = IBV_WR_SEND, .from = from, .size = 8});
  wait_for(pair.b.recv_cq);
  const uint8_t* data = to->addr;
  for (int i = 0; i < MESSAGES * SIZE; ++i)
    expect(data[i] == i / SIZE + 1, "a message has what was written into its buffer later");
  return 0;
}
