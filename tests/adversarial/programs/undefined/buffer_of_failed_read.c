// A READ fails, and the program goes on with what its buffer had before. IBTA vol 1, 9.5: only
// a completed READ says what its buffer has.
// RIGHT: it READs into a buffer of its own and copies what succeeded.
#include "connected.h"

enum { SIZE = 64 };

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr *source = make_region(SIZE, 0), *buffer = make_region(SIZE, 0);
  struct ibv_mr* spare = make_region(SIZE, 0);
  uint8_t* cache = buffer->addr;
  memset(cache, 7, SIZE);
#ifdef RIGHT
  struct ibv_mr* into = spare;
#else
  (void)spare;
  struct ibv_mr* into = buffer;
#endif
  struct ibv_mr wrong = *source;
  wrong.rkey ^= 0x80;  // no key
  post(&pair.a, (struct request){.opcode = IBV_WR_RDMA_READ,
                                 .from = into,
                                 .to = &wrong,
                                 .size = SIZE,
                                 .flags = IBV_SEND_SIGNALED});
  const struct ibv_wc wc = wait_for_any(pair.a.send_cq);
  expect(wc.status == IBV_WC_REM_ACCESS_ERR, "the READ fails");
  for (int i = 0; i < SIZE; ++i) expect(cache[i] == 7, "a failed READ changed its buffer");
  return 0;
}
