// The requester of a READ polls for the last byte of its own buffer. IBTA vol 1, 9.5: it shall not
// depend on the buffer's contents before the completion.
// RIGHT: it waits for the completion.
#include "connected.h"

enum { SIZE = 4000 };

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr *source = make_region(SIZE, 0), *buffer = make_region(SIZE, 0);
  memset(source->addr, 7, SIZE);
  const uint8_t* data = buffer->addr;
  post(&pair.a, (struct request){.opcode = IBV_WR_RDMA_READ,
                                 .from = buffer,
                                 .to = source,
                                 .size = SIZE,
                                 .flags = IBV_SEND_SIGNALED});
#ifdef RIGHT
  wait_for(pair.a.send_cq);
#else
  wait_for_byte(&data[SIZE - 1]);
#endif
  for (int i = 0; i < SIZE; ++i) expect(data[i] == 7, "the last byte of a READ came before others");
  return 0;
}
