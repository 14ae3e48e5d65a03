// The program arms a CQ and waits at once. This time the completion comes later. RIGHT: it polls
// between.
#include <pthread.h>
#include <unistd.h>

#include "pair.h"

static struct pair p;

static void* send_later(void* argument) {
  (void)argument;
  usleep(100000);
  check(post_send(&p.a, 1, 1) == 0, "ibv_post_send");
  next_success(p.a.cq);
  return NULL;
}

int main(void) {
  open_pair(&p, (struct pair_options){.with_channel = 1});
  connect_pair(&p);
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
  pthread_t thread;
  check(pthread_create(&thread, NULL, send_later, NULL) == 0, "pthread_create");
  check(ibv_req_notify_cq(p.b.cq, 0) == 0, "ibv_req_notify_cq");
  struct ibv_wc wc;
#ifdef RIGHT
  check(ibv_poll_cq(p.b.cq, 1, &wc) == 0, "nothing yet");
#endif
  struct ibv_cq* cq;
  void* context;
  check(ibv_get_cq_event(p.b.channel, &cq, &context) == 0, "ibv_get_cq_event");  // wrong
  ibv_ack_cq_events(cq, 1);
  check(ibv_poll_cq(p.b.cq, 1, &wc) == 1, "ibv_poll_cq");
  check(pthread_join(thread, NULL) == 0, "pthread_join");
  close_pair(&p);
  return 0;
}
