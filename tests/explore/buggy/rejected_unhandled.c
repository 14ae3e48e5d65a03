// The mistake: the client waits for RDMA_CM_EVENT_ESTABLISHED and passes over any other event.
// What a user sees: the client waits for ever for a server that is full.
// What provokes it: the connection request is rejected.
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "connection.h"

enum { SIZE = 64 };

static void server(int socket) {
  struct connection c = {0};
  char text[SIZE] = "";
  listen_for_client(&c, socket);
  await_request(&c);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, text, SIZE);
  post_receive(&c, mr, text, SIZE, 0);
  accept_client(&c, NULL);
  await_success(&c);
  printf("received: %s\n", text);
  await_event(c.events, RDMA_CM_EVENT_DISCONNECTED);
  deregister(mr);
  close_connection(&c);
}

static void connect_and_wait(struct connection* c) {
  struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 6};
  if (rdma_connect(c->id, &param) != 0) err(1, "rdma_connect");
  for (int established = 0; !established;) {
    struct rdma_cm_event* event;
    if (rdma_get_cm_event(c->events, &event) != 0) err(1, "rdma_get_cm_event");
    switch (event->event) {
      case RDMA_CM_EVENT_ESTABLISHED:
        established = 1;
        break;
#ifdef CORRECTED
      case RDMA_CM_EVENT_REJECTED:
      case RDMA_CM_EVENT_UNREACHABLE:
      case RDMA_CM_EVENT_CONNECT_ERROR:
      case RDMA_CM_EVENT_DISCONNECTED:
      case RDMA_CM_EVENT_DEVICE_REMOVAL:
        errx(1, "no connection: %s, status %d", rdma_event_str(event->event), event->status);
#endif
      default:
        break;
    }
    rdma_ack_cm_event(event);
  }
}

static void client(int socket) {
  struct connection c = {0};
  char text[SIZE] = "";
  resolve_server(&c, socket);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, text, SIZE);
  connect_and_wait(&c);
  strcpy(text, "is anybody there");
  post_send(&c, mr, text, SIZE, 0);
  await_success(&c);
  disconnect(&c);
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
