// The mistake: the program treats RDMA_CM_EVENT_UNREACHABLE as the end of an attempt to connect,
// when it has no resources yet; an established connection may get the event, too.
// What a user sees: the client crashes when its server moves to another machine.
// What provokes it: the server's link address changes.
#include <err.h>
#include <poll.h>
#include <stdio.h>

#include "connection.h"

enum { MESSAGES = 4 };

static void look_for_event(struct connection* c) {
  struct pollfd entry = {.fd = c->events->fd, .events = POLLIN};
  struct rdma_cm_event* event;
  if (poll(&entry, 1, 0) != 1) return;
  if (rdma_get_cm_event(c->events, &event) != 0) err(1, "rdma_get_cm_event");
#ifdef CORRECTED
  if (event->event != RDMA_CM_EVENT_ADDR_CHANGE)
    errx(1, "the server is lost: %s", rdma_event_str(event->event));
#else
  if (event->event == RDMA_CM_EVENT_UNREACHABLE) {
    rdma_destroy_qp(c->id);
    c->qp = NULL;
  } else if (event->event != RDMA_CM_EVENT_ADDR_CHANGE) {
    errx(1, "the server is lost: %s", rdma_event_str(event->event));
  }
#endif
  rdma_ack_cm_event(event);
}

static void server(int socket) {
  struct connection c = {0};
  int numbers[MESSAGES] = {0}, sum = 0;
  listen_for_client(&c, socket);
  await_request(&c);
  open_queues(&c, 1, MESSAGES, MESSAGES + 1);
  struct ibv_mr* mr = register_memory(&c, numbers, sizeof numbers);
  for (int i = 0; i < MESSAGES; ++i) post_receive(&c, mr, &numbers[i], sizeof numbers[i], 0);
  accept_client(&c, NULL);
  for (int i = 0; i < MESSAGES; ++i) await_success(&c);
  for (int i = 0; i < MESSAGES; ++i) sum += numbers[i];
  printf("%d messages, sum %d\n", MESSAGES, sum);
  await_event(c.events, RDMA_CM_EVENT_DISCONNECTED);
  deregister(mr);
  close_connection(&c);
}

static void client(int socket) {
  struct connection c = {0};
  int number = 0;
  resolve_server(&c, socket);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, &number, sizeof number);
  connect_to_server(&c, NULL);
  for (int i = 1; i <= MESSAGES; ++i) {
    number = i;
    look_for_event(&c);
    post_send(&c, mr, &number, sizeof number, 0);
    await_success(&c);
  }
  disconnect(&c);
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
