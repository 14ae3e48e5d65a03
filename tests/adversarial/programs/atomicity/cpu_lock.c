// A lock that peers take by CMP_SWAP and its owner by a compare-exchange of the processor.
// RIGHT: the owner uses CMP_SWAP too.
#include "connected.h"

enum { ROUNDS = 8, FREE = 0, PEER = 1, OWNER = 2 };

// Returns whether the lock was free and is now taken.
static int take_remotely(struct end* end, struct ibv_mr* lock, struct ibv_mr* old, uint64_t by) {
  post(end, (struct request){.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
                             .from = old,
                             .to = lock,
                             .size = 8,
                             .compare = FREE,
                             .value = by,
                             .flags = IBV_SEND_SIGNALED});
  wait_for(end->send_cq);
  return load(old->addr) == FREE;
}

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr *old = make_region(8, 0), *old_of_owner = make_region(8, 0);
  for (int i = 0; i < ROUNDS; ++i) {
    struct ibv_mr* lock = make_region(8, 0);
    const int peer_has_it = take_remotely(&pair.a, lock, old, PEER);
#ifdef RIGHT
    const int owner_has_it = take_remotely(&pair.b, lock, old_of_owner, OWNER);
#else
    (void)old_of_owner;
    uint64_t expected = FREE;
    const int owner_has_it = __atomic_compare_exchange_n((uint64_t*)lock->addr, &expected, OWNER, 0,
                                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
#endif
    expect(peer_has_it != owner_has_it, "both have the lock");
  }
  return 0;
}
