// A reader READs a record between two sequence numbers and trusts it if both are equal. The bytes
// of a READ are read in any order (IBTA vol 1, 9.5), so that both may be new and the record old.
// RIGHT: the record has a checksum.
#include <pthread.h>

#include "connected.h"

enum { WORDS = 16, ROUNDS = 40 };

struct record {
  uint64_t before, words[WORDS], checksum, after;
};

static uint64_t checksum_of(const struct record* record) {
  uint64_t sum = 1;
  for (int i = 0; i < WORDS; ++i) sum = sum * 0x9e3779b97f4a7c15u + record->words[i];
  return sum;
}

static volatile int ends;

static void* change(void* argument) {
  struct record* record = argument;
  for (uint64_t version = 2; !ends; ++version) {
    record->before = version;
    for (int i = 0; i < WORDS; ++i) record->words[i] = version;
    record->checksum = checksum_of(record);
    record->after = version;
    usleep(5);
  }
  return NULL;
}

int main(void) {
  struct pair pair = connect_pair();
  struct ibv_mr* mine = make_region(sizeof(struct record), 0);
  struct ibv_mr* copy_region = make_region(sizeof(struct record), 0);
  struct record* record = mine->addr;
  const struct record* copy = copy_region->addr;
  record->checksum = checksum_of(record);
  pthread_t writer;
  expect(pthread_create(&writer, NULL, change, record) == 0, "pthread_create");
  int consistent = 1;
  for (int round = 0; round < ROUNDS; ++round) {
    post(&pair.a, (struct request){.opcode = IBV_WR_RDMA_READ,
                                   .from = copy_region,
                                   .to = mine,
                                   .size = sizeof *copy,
                                   .flags = IBV_SEND_SIGNALED});
    wait_for(pair.a.send_cq);
#ifdef RIGHT
    const int is_whole = copy->checksum == checksum_of(copy);
#else
    const int is_whole = copy->before == copy->after;
#endif
    if (!is_whole) continue;  // try again
    for (int i = 1; i < WORDS; ++i) consistent &= copy->words[i] == copy->words[0];
  }
  ends = 1;
  pthread_join(writer, NULL);
  expect(consistent, "a record between two equal sequence numbers is a mixture");
  return 0;
}
