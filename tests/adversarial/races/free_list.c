// Two threads take buffers from a list to post them as receives. Each looks whether there is one,
// and takes it, under a lock; but not under the same hold of it.
// Depth 2: the other thread takes the last buffer after the look and before the take.
#include "race.h"

enum { BUFFERS = 3 };
static struct end receiver, sender;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int left = BUFFERS;
static bool right;

static bool take(void) {
  lock(&mutex);
  const bool is_there = left > 0;
  if (right && is_there) --left;
  unlock(&mutex);
  if (!is_there || right) return is_there;
  lock(&mutex);
  --left;
  const bool holds = left >= 0;
  unlock(&mutex);
  require(holds, "a buffer was taken from an empty list");
  return true;
}

static void* refill(void* unused) {
  while (take()) post_receive(&receiver, 0);
  return unused;
}

int main(int argc, char** argv) {
  right = is_right(argc, argv);
  open_pair(&receiver, &sender);
  const pthread_t one = start(refill, NULL), other = start(refill, NULL);
  join(one);
  join(other);
}
