// A log whose writer appends a record and then its commit mark, both in relaxed memory; a reader
// believes that a marked record is whole.
// RIGHT: the mark is a WRITE with immediate data, and the reader waits for its completion, which
// makes all visible that came before it (ibv_reg_mr(3)).
#include "connected.h"

enum { RECORD = 256, RECORDS = 6, MARK = 8, STEP = RECORD + MARK };

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr* from = make_region(RECORD, 0);
  struct ibv_mr* log = make_region(STEP * RECORDS, IBV_ACCESS_RELAXED_ORDERING);
  struct ibv_mr* unused = make_region(8, 0);
  memset(from->addr, 7, RECORD);
  for (size_t i = 0; i < RECORDS; ++i) {
    const uint8_t* record = (const uint8_t*)log->addr + i * STEP;
    post(&pair.a, (struct request){.opcode = IBV_WR_RDMA_WRITE,
                                   .from = from,
                                   .to = log,
                                   .to_offset = i * STEP,
                                   .size = RECORD});
    struct request mark = {.opcode = IBV_WR_RDMA_WRITE,
                           .from = from,
                           .to = log,
                           .to_offset = i * STEP + RECORD,
                           .size = MARK};
#ifdef RIGHT
    post_receive(&pair.b, unused, 8);
    mark.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    post(&pair.a, mark);
    wait_for(pair.b.recv_cq);
#else
    (void)unused;
    post(&pair.a, mark);
    wait_for_byte(record + RECORD);
#endif
    for (int j = 0; j < RECORD; ++j) expect(record[j] == 7, "the mark came before the record");
  }
  return 0;
}
