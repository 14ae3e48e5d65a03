// Data goes by one QP and the flag for it by another one, which is "sent later". Two QPs have no
// order, and the completion of the flag's WRITE orders nothing of the other QP (IBTA vol 1, 9.5).
// RIGHT: both go by one QP, and the flag is a SEND.
#include "connected.h"

enum { SIZE = 4096 };

int main(void) {
  struct pair data_pair = connect_pair(), flag_pair = connect_pair();
  struct ibv_mr *from = make_region(SIZE, 0), *to = make_region(SIZE, 0);
  struct ibv_mr* flag = make_region(8, 0);
  memset(from->addr, 7, SIZE);
  post_receive(&flag_pair.b, flag, 8);
  post_receive(&data_pair.b, flag, 8);
  struct request write = {.opcode = IBV_WR_RDMA_WRITE, .from = from, .to = to, .size = SIZE};
  struct request send = {.opcode = IBV_WR_SEND, .from = from, .size = 8};
  post(&data_pair.a, write);
#ifdef RIGHT
  post(&data_pair.a, send);
  wait_for(data_pair.b.recv_cq);
#else
  post(&flag_pair.a, send);
  wait_for(flag_pair.b.recv_cq);
#endif
  const uint8_t* data = to->addr;
  for (int i = 0; i < SIZE; ++i) expect(data[i] == 7, "the flag came before the data");
  return 0;
}
