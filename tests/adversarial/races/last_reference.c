// A connection has a count of references. A poller drops the last one, and destroys the QP. A
// poster looks whether there is one before it takes its own.
// Depth 2: the last is dropped after the look and before the take.
#include "race.h"

static struct end receiver, sender;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int references = 1;
static volatile bool is_destroyed;
static bool right;

static void* drop(void* unused) {
  wait_for_one(&receiver);
  lock(&mutex);
  if (--references == 0) is_destroyed = true;
  unlock(&mutex);
  return unused;
}

int main(int argc, char** argv) {
  right = is_right(argc, argv);
  open_pair(&receiver, &sender);
  post_receive(&receiver, 0);
  post_receive(&receiver, 1);
  const pthread_t poller = start(drop, NULL);
  post_send(&sender, 0);
  lock(&mutex);
  const bool may_post = references > 0;
  if (right && may_post) ++references;
  unlock(&mutex);
  if (may_post) {
    if (!right) {
      lock(&mutex);
      ++references;
      unlock(&mutex);
    }
    require(!is_destroyed, "a QP is used that was destroyed");
    post_send(&sender, 1);
  }
  join(poller);
}
