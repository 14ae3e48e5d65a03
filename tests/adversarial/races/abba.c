// Two threads post on two QPs, each of which has a lock, and take both in different orders.
// Depth 2: each has its first lock before the other asks for it. It hangs.
#include "race.h"

static struct end one, other;
static pthread_mutex_t of_one = PTHREAD_MUTEX_INITIALIZER, of_other = PTHREAD_MUTEX_INITIALIZER;
static bool right;

static void* send_back(void* unused) {
  lock(right ? &of_one : &of_other);
  post_send(&other, 0);
  lock(right ? &of_other : &of_one);
  post_send(&one, 1);
  unlock(&of_one);
  unlock(&of_other);
  return unused;
}

int main(int argc, char** argv) {
  right = is_right(argc, argv);
  open_pair(&one, &other);
  for (uint64_t i = 0; i < 4; ++i) {
    post_receive(&one, i);
    post_receive(&other, i);
  }
  const pthread_t thread = start(send_back, NULL);
  lock(&of_one);
  post_send(&one, 0);
  lock(&of_other);
  post_send(&other, 1);
  unlock(&of_other);
  unlock(&of_one);
  join(thread);
}
