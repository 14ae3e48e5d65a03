// The mistake: completion events are acknowledged all at once at the end, but not if a completion
// has an error. ibv_destroy_cq waits until all events of the CQ are acknowledged.
// What a user sees: the server says what failed, and then never ends.
// What provokes it: a receive completes with an error.
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include "connection.h"

enum { MESSAGES = 4 };

// Returns 0, or -1 after an error.
static int receive_messages(struct connection* c, const int* numbers, int* sum) {
  int result = -1;
  unsigned events = 0;
  for (int received = 0; received < MESSAGES;) {
    struct ibv_cq* cq;
    void* context;
    await_readable(c->channel->fd, "messages");
    if (ibv_get_cq_event(c->channel, &cq, &context) != 0) err(1, "ibv_get_cq_event");
    ++events;
    arm(c);
    struct ibv_wc wc;
    while (poll_one(c, &wc) > 0) {
      if (wc.status != IBV_WC_SUCCESS) {
        warnx("message %d: %s", received, ibv_wc_status_str(wc.status));
#ifdef CORRECTED
        goto out;
#else
        return result;
#endif
      }
      *sum += numbers[wc.wr_id];
      ++received;
    }
  }
  result = 0;
#ifdef CORRECTED
out:
#endif
  ibv_ack_cq_events(c->cq, events);  // takes a lock: once is enough
  return result;
}

static void server(int socket) {
  struct connection c = {0};
  int numbers[MESSAGES], sum = 0;
  listen_for_client(&c, socket);
  await_request(&c);
  open_queues(&c, 1, MESSAGES, MESSAGES + 1);
  struct ibv_mr* mr = register_memory(&c, numbers, sizeof numbers);
  for (int i = 0; i < MESSAGES; ++i) post_receive(&c, mr, &numbers[i], sizeof(int), (uint64_t)i);
  arm(&c);
  accept_client(&c, NULL);
  const int result = receive_messages(&c, numbers, &sum);
  if (result == 0) printf("%d messages, sum %d\n", MESSAGES, sum);
  disconnect(&c);
  deregister(mr);
  close_connection(&c);
  if (result != 0) exit(1);
}

static void client(int socket) {
  struct connection c = {0};
  int number;
  resolve_server(&c, socket);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, &number, sizeof number);
  connect_to_server(&c, NULL);
  for (number = 1; number <= MESSAGES; ++number) {
    post_send(&c, mr, &number, sizeof number, 0);
    await_success(&c);
  }
  await_event(c.events, RDMA_CM_EVENT_DISCONNECTED);
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
