// Two completions lie in a CQ when it is armed. A thread polls one of them and waits, and nobody
// takes the other until a third message comes. RIGHT: another thread takes it during the wait.
#include <pthread.h>
#include <unistd.h>

#include "pair.h"

static struct pair p;

static void* other(void* unused) {
  usleep(20000);
#ifdef RIGHT
  next_success(p.b.cq);
#endif
  usleep(20000);
  check(post_send(&p.a, 3, 1) == 0, "ibv_post_send");
  next_success(p.a.cq);
  return unused;
}

int main(void) {
  open_pair(&p, (struct pair_options){.with_channel = 1});
  connect_pair(&p);
  for (int i = 1; i <= 3; ++i) check(post_receive(&p.b, i) == 0, "ibv_post_recv");
  for (int i = 1; i <= 2; ++i) {
    check(post_send(&p.a, i, 1) == 0, "ibv_post_send");
    next_success(p.a.cq);
  }
  pthread_t thread;
  check(pthread_create(&thread, NULL, other, NULL) == 0, "pthread_create");
  check(ibv_req_notify_cq(p.b.cq, 0) == 0, "ibv_req_notify_cq");
  next_success(p.b.cq);
  struct ibv_cq* cq;
  void* context;
  check(ibv_get_cq_event(p.b.channel, &cq, &context) == 0, "ibv_get_cq_event");  // wrong
  ibv_ack_cq_events(cq, 1);
  check(pthread_join(thread, NULL) == 0, "pthread_join");
  close_pair(&p);
  return 0;
}
