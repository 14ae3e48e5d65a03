// A sender fills its only buffer with the next message after a while, by which the NIC "surely has
// sent" the one before. ibv_post_send(3): the buffer is the NIC's until the completion.
// RIGHT: it waits for the completion.
#include "connected.h"

enum { SIZE = 64, MESSAGES = 8 };

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr *from = make_region(SIZE, 0), *to = make_region(SIZE, 0);
  for (int i = 1; i <= MESSAGES; ++i) {
    post_receive(&pair.b, to, SIZE);
    memset(from->addr, i, SIZE);
    post(&pair.a,
         (struct request){
             .opcode = IBV_WR_SEND, .from = from, .size = SIZE, .flags = IBV_SEND_SIGNALED});
#ifdef RIGHT
    wait_for(pair.a.send_cq);
#else
    usleep(5);
#endif
    memset(from->addr, 0xff, SIZE);
    wait_for(pair.b.recv_cq);
    const uint8_t* data = to->addr;
    for (int j = 0; j < SIZE; ++j) expect(data[j] == i, "a message has what came after it");
  }
  return 0;
}
