// A thread waits for an event of a CQ that is not armed, a message arrives, and the program is
// killed. RIGHT: the thread is canceled, as many programs do at their end, and the program goes
// on.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "pair.h"

static struct pair p;
static pthread_t first;

static void* other(void* unused) {
  usleep(20000);
  check(post_send(&p.a, 1, 1) == 0, "ibv_post_send");
  next_success(p.a.cq);
#ifdef RIGHT
  check(pthread_cancel(first) == 0, "pthread_cancel");
  check(pthread_join(first, NULL) == 0, "pthread_join");
  next_success(p.b.cq);
  close_pair(&p);
  exit(0);
#else
  kill(getpid(), SIGKILL);
#endif
  return unused;
}

int main(void) {
  first = pthread_self();
  open_pair(&p, (struct pair_options){.with_channel = 1});
  connect_pair(&p);
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
  pthread_t thread;
  check(pthread_create(&thread, NULL, other, NULL) == 0, "pthread_create");
  struct ibv_cq* cq;
  void* context;
  ibv_get_cq_event(p.b.channel, &cq, &context);  // wrong
  return 1;
}
