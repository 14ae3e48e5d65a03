// Two threads poll the CQs of the two ends of a message, and the one that finds the last of its two
// completions frees the message's buffer: both decide by a count, which they read and then write.
// Depth 2: the other thread reads after the read and before the write. The buffer is never freed.
#include "race.h"

enum { MESSAGES = 2 };
static struct end receiver, sender;
static volatile int pending[MESSAGES], frees[MESSAGES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool right;

static void* poll_end(void* end) {
  for (int i = 0; i < MESSAGES; ++i) {
    const uint64_t id = wait_for_one(end).wr_id;
    lock(&mutex);
    int left = pending[id];
    if (!right) {
      unlock(&mutex);
      lock(&mutex);
    }
    pending[id] = --left;
    if (left == 0) ++frees[id];
    unlock(&mutex);
  }
  return NULL;
}

int main(int argc, char** argv) {
  right = is_right(argc, argv);
  open_pair(&receiver, &sender);
  for (int i = 0; i < MESSAGES; ++i) pending[i] = 2;
  const pthread_t one = start(poll_end, &receiver), other = start(poll_end, &sender);
  for (uint64_t i = 0; i < MESSAGES; ++i) {
    post_receive(&receiver, i);
    post_send(&sender, i);
  }
  join(one);
  join(other);
  for (int i = 0; i < MESSAGES; ++i) require(frees[i] == 1, "a buffer was not freed once");
}
