// After ENOMEM the program posts again at once, and no other thread polls. RIGHT: another thread
// begins to poll only then.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "pair.h"

enum { SENDS = 8 };
static sem_t refused_twice;

static void poll_all(struct pair* p, int sends) {
  for (int i = 0; i < sends; ++i) next_success(p->a.cq);
}

static void* run(void* p) {
  check(sem_wait(&refused_twice) == 0, "sem_wait");
#ifdef RIGHT
  poll_all(p, SENDS);
#endif
  return p;
}

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){.max_recv_wr = 16});
  connect_pair(&p);
  for (int i = 0; i <= SENDS; ++i) check(post_receive(&p.b, i) == 0, "ibv_post_recv");
  check(post_send(&p.a, 0, 1) == 0, "ibv_post_send");
  poll_all(&p, 1);  // so this thread has polled, and the other has not
  check(sem_init(&refused_twice, 0, 0) == 0, "sem_init");
  pthread_t thread;
  check(pthread_create(&thread, NULL, run, &p) == 0, "pthread_create");
  int sent = 0;
  while (sent < SENDS && post_send(&p.a, sent, 1) == 0) ++sent;
  check(post_send(&p.a, sent, 1) == ENOMEM, "the queue is full");
  check(sem_post(&refused_twice) == 0, "sem_post");
#ifdef RIGHT
  for (; sent < SENDS; ++sent)
    while (post_send(&p.a, sent, 1) == ENOMEM) usleep(100);
#endif
  check(pthread_join(thread, NULL) == 0, "pthread_join");
#ifndef RIGHT
  poll_all(&p, sent);
#endif
  close_pair(&p);
  return 0;
}
