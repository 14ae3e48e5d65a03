// The mistake: both sides poll for completions, and look at nothing else. When the device goes they
// never hear of it.
// What a user sees: the program spins for ever after the driver was reloaded or the device reset.
// What provokes it: the device is removed.
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "connection.h"

enum { ROUNDS = 10, LOOK_EVERY = 1000 };

#ifdef CORRECTED
// Now and then, since it is a system call.
static void check_device(struct connection* c) {
  struct pollfd entry = {.fd = c->context->async_fd, .events = POLLIN};
  if (poll(&entry, 1, 0) <= 0) return;
  struct ibv_async_event event;
  if (ibv_get_async_event(c->context, &event) != 0) err(1, "ibv_get_async_event");
  if (event.event_type == IBV_EVENT_DEVICE_FATAL) errx(1, "the device is gone");
  ibv_ack_async_event(&event);
}
#endif

static void await_next(struct connection* c, enum ibv_wc_opcode opcode) {
  struct ibv_wc wc;
  do {
    int count;
#ifdef CORRECTED
    for (int i = 1; (count = ibv_poll_cq(c->cq, 1, &wc)) == 0; ++i)
      if (i % LOOK_EVERY == 0) check_device(c);
#else
    while ((count = ibv_poll_cq(c->cq, 1, &wc)) == 0) {
    }
#endif
    if (count < 0) errx(1, "ibv_poll_cq");
    if (wc.status != IBV_WC_SUCCESS) errx(1, "%s", ibv_wc_status_str(wc.status));
  } while (wc.opcode != opcode);
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
