// A ring whose sender WRITEs an entry and then the tail counter, in memory with relaxed ordering.
// ibv_reg_mr(3): "RDMA write-after-write message order is no longer guaranteed".
// RIGHT: the region has no relaxed ordering.
#include "connected.h"

enum { ENTRY = 64, ENTRIES = 8, TAIL = ENTRY * ENTRIES };

int main(void) {
  struct pair pair = connect_pair();
#ifdef RIGHT
  const int access = 0;
#else
  const int access = IBV_ACCESS_RELAXED_ORDERING;
#endif
  struct ibv_mr *from = make_region(TAIL + 8 * ENTRIES, 0), *ring = make_region(TAIL + 8, access);
  for (int i = 0; i < ENTRIES; ++i) {
    memset((char*)from->addr + i * ENTRY, i + 1, ENTRY);
    ((uint64_t*)((char*)from->addr + TAIL))[i] = (uint64_t)i + 1;
    post(&pair.a, (struct request){.opcode = IBV_WR_RDMA_WRITE,
                                   .from = from,
                                   .from_offset = (size_t)i * ENTRY,
                                   .to = ring,
                                   .to_offset = (size_t)i * ENTRY,
                                   .size = ENTRY});
    post(&pair.a, (struct request){.opcode = IBV_WR_RDMA_WRITE,
                                   .from = from,
                                   .from_offset = TAIL + 8 * (size_t)i,
                                   .to = ring,
                                   .to_offset = TAIL,
                                   .size = 8});
    const uint64_t* tail = (const uint64_t*)((const char*)ring->addr + TAIL);
    while (load(tail) != (uint64_t)i + 1) {
    }
    const uint8_t* entry = (const uint8_t*)ring->addr + i * ENTRY;
    for (int j = 0; j < ENTRY; ++j) expect(entry[j] == i + 1, "the tail came before the entry");
  }
  return 0;
}
