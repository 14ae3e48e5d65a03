// A program goes by the opcode of a completion to know what it completes, also of failures, where
// ibv_poll_cq(3) leaves it undefined.
// RIGHT: it goes by wr_id.
#include "connected.h"

enum { SEND_ID = 1 };

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr* buffer = make_region(64, 0);
  fail_qp(pair.a.qp);
  post_receive(&pair.a, buffer, 64);  // wr_id 0
  post(&pair.a,
       (struct request){.opcode = IBV_WR_SEND, .from = buffer, .size = 8, .wr_id = SEND_ID});
  int sends = 0, receives = 0;
  for (int i = 0; i < 2; ++i) {
    const struct ibv_wc wc = wait_for_any(i == 0 ? pair.a.recv_cq : pair.a.send_cq);
#ifdef RIGHT
    const int is_receive = wc.wr_id != SEND_ID;
#else
    const int is_receive = (wc.opcode & IBV_WC_RECV) != 0;
#endif
    receives += is_receive;
    sends += !is_receive;
  }
  expect(sends == 1 && receives == 1, "the opcode of a failed completion says nothing");
  return 0;
}
