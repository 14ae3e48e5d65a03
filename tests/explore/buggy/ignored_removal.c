// The mistake: both sides poll for completions, and look at nothing else. When the device goes they
// never hear of it.
// What a user sees: the program spins for ever after the driver was reloaded or the device reset.
// What provokes it: the device is removed.
#include <err.h>
#include <poll.h>
#include <stdio.h>

#include "connection.h"

enum { ROUNDS = 10, SPINS = 1000 };

#ifdef CORRECTED
// Sleeps until there is a completion, or the device has something to say.
static void sleep_beside_device(struct connection* c) {
  struct pollfd entries[] = {{.fd = c->context->async_fd, .events = POLLIN},
                             {.fd = c->channel->fd, .events = POLLIN}};
  if (poll(entries, 2, PATIENCE_MS) <= 0) errx(1, "the peer is silent");
  if (entries[0].revents != 0) {
    struct ibv_async_event event;
    if (ibv_get_async_event(c->context, &event) != 0) err(1, "ibv_get_async_event");
    if (event.event_type == IBV_EVENT_DEVICE_FATAL) errx(1, "the device is gone");
    ibv_ack_async_event(&event);
  }
  if (entries[1].revents != 0) take_event(c);
}
#endif

static struct ibv_wc next_completion(struct connection* c) {
  struct ibv_wc wc;
#ifdef CORRECTED
  for (;;) {
    for (int i = 0; i < SPINS; ++i)
      if (poll_one(c, &wc) != 0) return wc;
    arm(c);
    if (poll_one(c, &wc) != 0) return wc;
    sleep_beside_device(c);
  }
#else
  while (poll_one(c, &wc) == 0) {
  }
  return wc;
#endif
}

struct numbers {
  int sent, received;
};

// Until so many sends and receives, of all that were posted, have completed.
static void await(struct connection* c, struct numbers* completed, int sends, int receives) {
  while (completed->sent < sends || completed->received < receives) {
    const struct ibv_wc wc = next_completion(c);
    if (wc.status != IBV_WC_SUCCESS) errx(1, "%s", ibv_wc_status_str(wc.status));
    ++*(wc.opcode == IBV_WC_RECV ? &completed->received : &completed->sent);
  }
}

static void server(int socket) {
  struct connection c = {0};
  struct numbers numbers, completed = {0};
  open_device(&c);
  open_queues(&c, 2, 1, 4);
  struct ibv_mr* mr = register_memory(&c, &numbers, sizeof numbers);
  post_receive(&c, mr, &numbers.received, sizeof(int), 0);
  exchange(&c, socket, NULL, NULL);
  for (int i = 0; i < ROUNDS; ++i) {
    await(&c, &completed, i, i + 1);
    numbers.sent = numbers.received + 1;
    if (i + 1 < ROUNDS) post_receive(&c, mr, &numbers.received, sizeof(int), 0);
    post_send(&c, mr, &numbers.sent, sizeof(int), 0);
  }
  await(&c, &completed, ROUNDS, ROUNDS);
  deregister(mr);
  close_connection(&c);
}

static void client(int socket) {
  struct connection c = {0};
  struct numbers numbers = {0}, completed = {0};
  open_device(&c);
  open_queues(&c, 2, 1, 4);
  struct ibv_mr* mr = register_memory(&c, &numbers, sizeof numbers);
  exchange(&c, socket, NULL, NULL);
  for (int i = 0; i < ROUNDS; ++i) {
    post_receive(&c, mr, &numbers.received, sizeof(int), 0);
    post_send(&c, mr, &numbers.sent, sizeof(int), 0);
    await(&c, &completed, i + 1, i + 1);
    numbers.sent = numbers.received;
  }
  printf("counted to %d\n", numbers.received);
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
