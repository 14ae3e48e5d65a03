// The mistake: the receiver posts 16 receives to a CQ of 4, since it polls faster than messages
// come, and it takes a negative answer of ibv_poll_cq for "nothing there".
// What a user sees: after a burst the receiver sleeps for ever.
// What provokes it: messages are held up and come all at once, here since a port is down for a
// time.
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>

#include "connection.h"

enum { MESSAGES = 16, PERIOD_MS = 5 };
#ifdef CORRECTED
enum { CQ_ENTRIES = MESSAGES + 1 };
#else
enum { CQ_ENTRIES = 4 };
#endif

static void sleep_until_event(struct connection* c) {
#ifdef CORRECTED
  await_readable(c->channel->fd, "messages");
#endif
  take_event(c);
  ibv_req_notify_cq(c->cq, 0);
}

static void server(int socket) {
  struct connection c = {0};
  int numbers[MESSAGES], sum = 0;
  open_device(&c);
  open_queues(&c, 1, MESSAGES, CQ_ENTRIES);
  struct ibv_mr* mr = register_memory(&c, numbers, sizeof numbers);
  for (int i = 0; i < MESSAGES; ++i) post_receive(&c, mr, &numbers[i], sizeof(int), (uint64_t)i);
  arm(&c);
  exchange(&c, socket, NULL, NULL);
  for (int received = 0; received < MESSAGES;) {
    struct ibv_wc wc;
    sleep_until_event(&c);
    int count;  // negative: the CQ has overrun
    while ((count = ibv_poll_cq(c.cq, 1, &wc)) > 0) {
      if (wc.status != IBV_WC_SUCCESS) errx(1, "%s", ibv_wc_status_str(wc.status));
      sum += numbers[wc.wr_id];
      ++received;
    }
#ifdef CORRECTED
    if (count < 0) errx(1, "ibv_poll_cq: the completion queue has failed");
#endif
  }
  printf("%d messages, sum %d\n", MESSAGES, sum);
  deregister(mr);
  close_connection(&c);
}

static void client(int socket) {
  struct connection c = {0};
  int numbers[MESSAGES];
  open_device(&c);
  open_queues(&c, MESSAGES, 1, MESSAGES + 1);
  struct ibv_mr* mr = register_memory(&c, numbers, sizeof numbers);
  exchange(&c, socket, NULL, NULL);
  for (int i = 0; i < MESSAGES; ++i) {
    const struct timespec period = {0, PERIOD_MS * 1000000L};
    nanosleep(&period, NULL);
    numbers[i] = i;
    post_send(&c, mr, &numbers[i], sizeof(int), (uint64_t)i);
  }
  for (int i = 0; i < MESSAGES; ++i) await_success(&c);
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
