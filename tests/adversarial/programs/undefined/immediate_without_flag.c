// A receiver takes imm_data of every message, and 0 for "none". ibv_poll_cq(3): it is valid only if
// wc_flags has IBV_WC_WITH_IMM.
// RIGHT: it looks at the flag.
#include "connected.h"

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr* from = make_region(64, 0);
  struct ibv_mr* to = make_region(64, 0);
  post_receive(&pair.b, to, 64);
  post(&pair.a, (struct request){
                    .opcode = IBV_WR_SEND, .from = from, .size = 8, .flags = IBV_SEND_SIGNALED});
  const struct ibv_wc wc = wait_for(pair.b.recv_cq);
#ifdef RIGHT
  const int has_immediate = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
#else
  const int has_immediate = wc.imm_data != 0;
#endif
  expect(!has_immediate, "the message has no immediate data");
  wait_for(pair.a.send_cq);
  return 0;
}
