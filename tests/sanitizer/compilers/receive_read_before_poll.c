// For ThreadSanitizer: a thread polls the completion of a receive, and another one reads the buffer
// without having waited for it. RIGHT: it has waited.
#include <pthread.h>

#include "pair.h"

static struct pair p;

static void* poll_receive(void* unused) {
  next_success(p.b.cq);
  return unused;
}

int main(void) {
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
  check(post_send(&p.a, 1, 1) == 0, "ibv_post_send");
  pthread_t thread;
  check(pthread_create(&thread, NULL, poll_receive, NULL) == 0, "pthread_create");
  next_success(p.a.cq);
#ifdef RIGHT
  pthread_join(thread, NULL);
  check(p.b.buffer[3] == 0, "what was sent");
#else
  check(p.b.buffer[3] == 0, "what was sent");  // wrong
  pthread_join(thread, NULL);
#endif
  close_pair(&p);
  return 0;
}
