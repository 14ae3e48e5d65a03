// The receiver of a SEND looks at the length in its first word without waiting for the completion.
// RIGHT: it waits.
#include "connected.h"

enum { SIZE = 512 };

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr *from = make_region(SIZE, 0), *to = make_region(SIZE, 0);
  memset(from->addr, 7, SIZE);
  const uint8_t* data = to->addr;
  post_receive(&pair.b, to, SIZE);
  post(&pair.a, (struct request){.opcode = IBV_WR_SEND, .from = from, .size = SIZE});
#ifdef RIGHT
  wait_for(pair.b.recv_cq);
#else
  wait_for_byte(&data[0]);
#endif
  for (int i = 0; i < SIZE; ++i) expect(data[i] == 7, "a SEND is there in part");
  return 0;
}
