// A thread waits for an event of a CQ that nobody arms. A message arrives, and another thread ends
// the program: the wait was in vain. RIGHT: the other thread arms the CQ during the wait.
#include <pthread.h>
#include <unistd.h>

#include "pair.h"

static struct pair p;

static void* other(void* unused) {
  usleep(20000);
#ifdef RIGHT
  check(ibv_req_notify_cq(p.b.cq, 0) == 0, "ibv_req_notify_cq");
#endif
  check(post_send(&p.a, 1, 1) == 0, "ibv_post_send");
  next_success(p.a.cq);
#ifndef RIGHT
  exit(0);
#endif
  return unused;
}

int main(void) {
  open_pair(&p, (struct pair_options){.with_channel = 1});
  connect_pair(&p);
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
  pthread_t thread;
  check(pthread_create(&thread, NULL, other, NULL) == 0, "pthread_create");
  struct ibv_cq* cq;
  void* context;
  check(ibv_get_cq_event(p.b.channel, &cq, &context) == 0, "ibv_get_cq_event");  // wrong
  ibv_ack_cq_events(cq, 1);
  check(pthread_join(thread, NULL) == 0, "pthread_join");
  next_success(p.b.cq);
  close_pair(&p);
  return 0;
}
