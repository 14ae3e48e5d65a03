// A thread polls for a completion and signals a condition. The main thread looks whether that was
// done, and then waits, without looking again under the lock.
// Depth 2: the signal comes after the look and before the wait. It hangs.
#include "race.h"

static struct end receiver, sender;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static volatile bool is_done;

static void* poll_it(void* unused) {
  wait_for_one(&receiver);
  lock(&mutex);
  is_done = true;
  pthread_cond_signal(&condition);
  unlock(&mutex);
  return unused;
}

int main(int argc, char** argv) {
  const bool right = is_right(argc, argv);
  open_pair(&receiver, &sender);
  post_receive(&receiver, 0);
  const pthread_t poller = start(poll_it, NULL);
  post_send(&sender, 0);
  lock(&mutex);
  bool must_wait = !is_done;
  unlock(&mutex);
  if (must_wait) {
    lock(&mutex);
    if (right) must_wait = !is_done;
    while (must_wait) {
      pthread_cond_wait(&condition, &mutex);
      must_wait = !is_done;
    }
    unlock(&mutex);
  }
  join(poller);
}
