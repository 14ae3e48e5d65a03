// The mistake: when RDMA_CM_EVENT_DISCONNECTED comes the publisher destroys its QP while another
// thread still posts to it.
// What a user sees: the publisher dies by SIGSEGV when a subscriber leaves early.
// What provokes it: the subscriber is disconnected before it has all that it wants.
#include <err.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "connection.h"

enum { SAMPLES = 10, PERIOD_MS = 5 };

struct publisher {
  struct connection c;
  struct ibv_mr* mr;
  int samples[SAMPLES];
  int posted;
#ifdef CORRECTED
  atomic_bool stop;
#endif
};

static void* publish(void* argument) {
  struct publisher* p = argument;
  for (int i = 0; i < SAMPLES; ++i) {
    const struct timespec period = {0, PERIOD_MS * 1000000L};
    nanosleep(&period, NULL);
#ifdef CORRECTED
    if (p->stop) break;
#endif
    p->samples[i] = i * 10;
    struct ibv_sge sge = {
        .addr = (uintptr_t)&p->samples[i], .length = sizeof(int), .lkey = p->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = (uint64_t)i,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    if (ibv_post_send(p->c.id->qp, &wr, &bad) != 0) break;
    ++p->posted;
  }
  return NULL;
}

// The client: subscribes, and leaves when it has all.
static void subscriber(int socket) {
  struct connection c = {0};
  int samples[SAMPLES], count = 0, sum = 0;
  resolve_server(&c, socket);
  open_queues(&c, 1, SAMPLES, SAMPLES + 1);
  struct ibv_mr* mr = register_memory(&c, samples, sizeof samples);
  for (int i = 0; i < SAMPLES; ++i) post_receive(&c, mr, &samples[i], sizeof(int), (uint64_t)i);
  arm(&c);
  connect_to_server(&c, NULL);
  while (count < SAMPLES) {
    struct pollfd entries[] = {{.fd = c.channel->fd, .events = POLLIN},
                               {.fd = c.events->fd, .events = POLLIN}};
    if (poll(entries, 2, PATIENCE_MS) <= 0) errx(1, "the publisher is silent");
    if (entries[1].revents != 0) {
      await_event(c.events, RDMA_CM_EVENT_DISCONNECTED);
      rdma_disconnect(c.id);
      errx(1, "disconnected after %d samples", count);
    }
    take_event(&c);
    arm(&c);
    struct ibv_wc wc;
    for (; poll_one(&c, &wc) > 0; ++count) {
      if (wc.status != IBV_WC_SUCCESS) errx(1, "%s", ibv_wc_status_str(wc.status));
      sum += samples[wc.wr_id];
    }
  }
  printf("%d samples, sum %d\n", count, sum);
  disconnect(&c);
  deregister(mr);
  close_connection(&c);
}

static void publisher(int socket) {
  struct publisher p = {.posted = 0};
  pthread_t thread;
  listen_for_client(&p.c, socket);
  await_request(&p.c);
  open_queues(&p.c, SAMPLES, 1, SAMPLES + 1);
  p.mr = register_memory(&p.c, p.samples, sizeof p.samples);
  accept_client(&p.c, NULL);
  if (pthread_create(&thread, NULL, publish, &p) != 0) errx(1, "pthread_create");
  await_event(p.c.events, RDMA_CM_EVENT_DISCONNECTED);
#ifdef CORRECTED
  p.stop = 1;
  pthread_join(thread, NULL);
  rdma_destroy_qp(p.c.id);
#else
  rdma_destroy_qp(p.c.id);
  pthread_join(thread, NULL);
#endif
  p.c.qp = NULL;
  deregister(p.mr);
  close_connection(&p.c);
  if (p.posted < SAMPLES) errx(1, "the subscriber left after %d of %d samples", p.posted, SAMPLES);
}

int main(void) {
  return run_server_and_client(publisher, subscriber);
}
