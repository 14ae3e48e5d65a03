// Requests to two peers are sent one after the other, and the first reply is taken for the first
// peer's.
// RIGHT: the program looks which CQ has it.
#include "connected.h"

int main(void) {
  struct pair peers[2] = {connect_pair(), connect_pair()};
  struct ibv_mr* buffer = make_region(64, 0);
  for (int i = 0; i < 2; ++i) {
    post_receive(&peers[i].a, buffer, 64);
    post(&peers[i].b, (struct request){.opcode = IBV_WR_SEND, .from = buffer, .size = 8});
    usleep(10);
  }
  struct ibv_wc wc;
  int first = 0;
  for (;; first = !first)
    if (ibv_poll_cq(peers[first].a.recv_cq, 1, &wc) == 1) break;
#ifndef RIGHT
  expect(first == 0, "the second peer's message came first");
#endif
  wait_for(peers[!first].a.recv_cq);
  return 0;
}
