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

static void await_next(struct connection* c, enum ibv_wc_opcode opcode) {
  for (;;) {
    const struct ibv_wc wc = next_completion(c);
    if (wc.status != IBV_WC_SUCCESS) errx(1, "%s", ibv_wc_status_str(wc.status));
    if (wc.opcode == opcode) return;
  }
}

static void server(int socket) {
  struct connection c = {0};
  int number;
  open_device(&c);
  open_queues(&c, 2, 1, 4);
  struct ibv_mr* mr = register_memory(&c, &number, sizeof number);
  post_receive(&c, mr, &number, sizeof number, 0);
  exchange(&c, socket, NULL, NULL);
  for (int i = 0; i < ROUNDS; ++i) {
    await_next(&c, IBV_WC_RECV);
    number += 1;
    post_send(&c, mr, &number, sizeof number, 0);
    await_next(&c, IBV_WC_SEND);
    post_receive(&c, mr, &number, sizeof number, 0);
  }
  deregister(mr);
  close_connection(&c);
}

static void client(int socket) {
  struct connection c = {0};
  int number = 0;
  open_device(&c);
  open_queues(&c, 2, 1, 4);
  struct ibv_mr* mr = register_memory(&c, &number, sizeof number);
  exchange(&c, socket, NULL, NULL);
  for (int i = 0; i < ROUNDS; ++i) {
    post_receive(&c, mr, &number, sizeof number, 0);
    post_send(&c, mr, &number, sizeof number, 0);
    await_next(&c, IBV_WC_RECV);
  }
  printf("counted to %d\n", number);
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
