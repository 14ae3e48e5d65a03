// A receiver adds up byte_len of all completions, also of failures, where it is undefined.
// RIGHT: only of those that succeeded.
#include "connected.h"

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr* buffer = make_region(64, 0);
  post_receive(&pair.b, buffer, 64);
  post_receive(&pair.b, buffer, 64);
  post(&pair.a, (struct request){.opcode = IBV_WR_SEND, .from = buffer, .size = 24});
  uint64_t bytes = wait_for(pair.b.recv_cq).byte_len;
  fail_qp(pair.b.qp);
  const struct ibv_wc wc = wait_for_any(pair.b.recv_cq);
#ifdef RIGHT
  if (wc.status == IBV_WC_SUCCESS)
#endif
    bytes += wc.byte_len;
  expect(bytes == 24, "the length of a failed completion says nothing");
  return 0;
}
