// The mistake: the sender treats each async event as a port event, since it expects no other event
// at a queue pair that only sends.
// What a user sees: the sender crashes when its peer does something wrong.
// What provokes it: IBV_EVENT_QP_ACCESS_ERR, since the peer accesses memory without permission.
#include <err.h>
#include <poll.h>
#include <stdio.h>

#include "connection.h"

enum { MESSAGES = 6, PORTS = 2 };

static const char* const port_names[PORTS + 1] = {"none", "the first port", "the second port"};

static void look_for_event(struct connection* c) {
  struct pollfd entry = {.fd = c->context->async_fd, .events = POLLIN};
  struct ibv_async_event event;
  if (poll(&entry, 1, 0) != 1) return;
  if (ibv_get_async_event(c->context, &event) != 0) err(1, "ibv_get_async_event");
#ifdef CORRECTED
  const int is_of_port =
      event.event_type == IBV_EVENT_PORT_ERR || event.event_type == IBV_EVENT_PORT_ACTIVE;
  if (!is_of_port && event.event_type != IBV_EVENT_COMM_EST)
    errx(1, "%s", ibv_event_type_str(event.event_type));
#else
  const int is_of_port = 1;  // for an event about a queue pair this is a part of an address
#endif
  if (is_of_port)
    fprintf(stderr, "%s: %s\n", port_names[event.element.port_num],
            ibv_event_type_str(event.event_type));
  ibv_ack_async_event(&event);
}

static void server(int socket) {
  struct connection c = {0};
  int number = 0, sum = 0;
  open_device(&c);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, &number, sizeof number);
  exchange(&c, socket, NULL, NULL);
  for (int i = 0; i < MESSAGES; ++i) {
    post_receive(&c, mr, &number, sizeof number, 0);
    send_all(socket, &i, sizeof i);
    await_success(&c);
    sum += number;
  }
  printf("%d messages, sum %d\n", MESSAGES, sum);
  deregister(mr);
  close_connection(&c);
}

static void client(int socket) {
  struct connection c = {0};
  int number = 0, credit = 0;
  open_device(&c);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, &number, sizeof number);
  exchange(&c, socket, NULL, NULL);
  for (int i = 0; i < MESSAGES; ++i) {
    receive_all(socket, &credit, sizeof credit);
    number = i;
    post_send(&c, mr, &number, sizeof number, 0);
    await_success(&c);
    look_for_event(&c);
  }
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
