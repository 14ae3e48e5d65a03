// The receiver of a WRITE polls for its last byte and takes the rest for granted. IBTA vol 1, 9.5
// and o9-20: the bytes of one message have no order.
// RIGHT: the WRITE has immediate data, and the receiver waits for its completion.
#include "connected.h"

enum { SIZE = 1000 };

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr *from = make_region(SIZE, 0), *to = make_region(SIZE, 0);
  const uint8_t* data = to->addr;
  memset(from->addr, 7, SIZE);
  struct request write = {.opcode = IBV_WR_RDMA_WRITE, .from = from, .to = to, .size = SIZE};
#ifdef RIGHT
  post_receive(&pair.b, to, SIZE);
  write.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  post(&pair.a, write);
  wait_for(pair.b.recv_cq);
#else
  post(&pair.a, write);
  wait_for_byte(&data[SIZE - 1]);
#endif
  for (int i = 0; i < SIZE; ++i)
    expect(data[i] == 7, "the last byte of a WRITE came before others");
  return 0;
}
