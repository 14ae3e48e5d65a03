// Two threads post on one QP and number their messages by one counter, without a lock: the number
// is read, the message posted, and the counter set.
// Depth 2: the other thread reads after the read and before the store. Two messages have one
// number.
#include "race.h"

enum { EACH = 2 };
static struct end receiver, sender;
static volatile uint64_t next_id;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool right;

static void* send_some(void* unused) {
  for (int i = 0; i < EACH; ++i) {
    if (right) lock(&mutex);
    const uint64_t id = next_id;
    post_send(&sender, id);
    next_id = id + 1;
    if (right) unlock(&mutex);
  }
  return unused;
}

int main(int argc, char** argv) {
  right = is_right(argc, argv);
  open_pair(&receiver, &sender);
  for (uint64_t i = 0; i < 2 * EACH; ++i) post_receive(&receiver, i);
  const pthread_t one = start(send_some, NULL), other = start(send_some, NULL);
  join(one);
  join(other);
  bool seen[2 * EACH] = {false};
  for (int i = 0; i < 2 * EACH; ++i) {
    const uint64_t id = wait_for_one(&sender).wr_id;
    require(id < 2 * EACH && !seen[id], "two messages have one number");
    seen[id] = true;
  }
}
