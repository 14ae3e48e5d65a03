// The reply to a request has come, so the completion of the request "must be there". The receive
// and the send queue have no order among each other: the reply may overtake it.
// RIGHT: the program waits for both.
#include "connected.h"

enum { ROUNDS = 4 };

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr *mine = make_region(64, 0), *theirs = make_region(64, 0);
  const struct request send = {
      .opcode = IBV_WR_SEND, .from = mine, .size = 8, .flags = IBV_SEND_SIGNALED};
  for (int i = 0; i < ROUNDS; ++i) {
    post_receive(&pair.a, mine, 64);
    post_receive(&pair.b, theirs, 64);
    post(&pair.a, send);
    wait_for(pair.b.recv_cq);
    post(&pair.b,
         (struct request){
             .opcode = IBV_WR_SEND, .from = theirs, .size = 8, .flags = IBV_SEND_SIGNALED});
    wait_for(pair.a.recv_cq);
#ifdef RIGHT
    wait_for(pair.a.send_cq);
#else
    struct ibv_wc wc;
    expect(ibv_poll_cq(pair.a.send_cq, 1, &wc) == 1, "the reply came before the completion");
#endif
    wait_for(pair.b.send_cq);
  }
  return 0;
}
