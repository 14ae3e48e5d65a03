// For ThreadSanitizer: the buffer of a send is changed before its completion was polled. RIGHT:
// threads that post, poll and use the buffers, ordered by completions and messages alone.
#include <pthread.h>

#include "pair.h"

static struct pair p;

#ifdef RIGHT
enum { MESSAGES = 50 };

static char shared[64];  // of both threads: the message says whose it is

// Sends have the begin of a side's buffer, and receives another part of it.
static void post_receive_behind(struct side* s) {
  struct ibv_sge sge = {(uintptr_t)s->buffer + 64, 64, s->mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  check(ibv_post_recv(s->qp, &wr, &bad) == 0, "ibv_post_recv");
}

// Receives, changes what the other thread has changed before, and answers.
static void* answer(void* unused) {
  for (int i = 0; i < MESSAGES; ++i) {
    next_success(p.b.cq);
    ++shared[0];
    ++p.b.buffer[i % 8];
    ++p.b.buffer[64];
    post_receive_behind(&p.b);
    check(post_send(&p.b, 1, 1) == 0, "ibv_post_send");
    next_success(p.b.cq);
  }
  return unused;
}

static void ask(void) {
  for (int i = 0; i < MESSAGES; ++i) {
    ++shared[0];
    p.a.buffer[64] = (char)i;  // of the receive that is not posted yet
    post_receive_behind(&p.a);
    check(post_send(&p.a, 2, 1) == 0, "ibv_post_send");
    next_success(p.a.cq);
    next_success(p.a.cq);
    ++p.a.buffer[0];
  }
}
#endif

int main(void) {
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
#ifdef RIGHT
  post_receive_behind(&p.b);
  pthread_t thread;
  check(pthread_create(&thread, NULL, answer, NULL) == 0, "pthread_create");
  ask();
  pthread_join(thread, NULL);
  check(shared[0] == 2 * MESSAGES, "both threads have counted");
#else
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
  check(post_send(&p.a, 1, 1) == 0, "ibv_post_send");
  p.a.buffer[3] = 7;  // wrong
  next_success(p.a.cq);
#endif
  close_pair(&p);
  return 0;
}
