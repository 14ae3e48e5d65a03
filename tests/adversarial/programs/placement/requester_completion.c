// The sender of a WRITE waits for its completion and then says by other means (a socket; here, the
// same process) that the data is there. The completion says that the peer's NIC has it, not that
// its processor sees it (IBTA vol 1, 9.5).
// RIGHT: a SEND on the same QP says it.
#include "connected.h"

enum { SIZE = 256 };

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr *from = make_region(SIZE, 0), *to = make_region(SIZE, 0);
  struct ibv_mr* word = make_region(8, 0);
  memset(from->addr, 7, SIZE);
  post(&pair.a, (struct request){.opcode = IBV_WR_RDMA_WRITE,
                                 .from = from,
                                 .to = to,
                                 .size = SIZE,
                                 .flags = IBV_SEND_SIGNALED});
  wait_for(pair.a.send_cq);
#ifdef RIGHT
  post_receive(&pair.b, word, 8);
  post(&pair.a, (struct request){.opcode = IBV_WR_SEND, .from = from, .size = 8});
  wait_for(pair.b.recv_cq);
#else
  (void)word;
#endif
  const uint8_t* data = to->addr;
  for (int i = 0; i < SIZE; ++i) expect(data[i] == 7, "a completed WRITE is not visible");
  return 0;
}
