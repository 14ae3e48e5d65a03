// The mistake: the server has an array for the connections of its three clients, and takes the next
// entry for each request. A client that tries again needs a fourth.
// What a user sees: after trouble at a client the server writes beyond the array, over the pointer
// behind it, and crashes when it frees that: "double free".
// What provokes it: a connection fails at the client after the server has seen its request.
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "connection.h"

enum { CLIENTS = 3, ATTEMPTS = 3 };

struct statistics {
  int established;
};

struct clients {
  struct rdma_cm_id* ids[CLIENTS];  // NULL: a free entry
  struct statistics* statistics;
  int requests;
};

static void create_queue_pair(struct rdma_cm_id* id) {
  struct ibv_qp_init_attr init = {
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
  if (rdma_create_qp(id, NULL, &init) != 0) err(1, "rdma_create_qp");
}

static struct rdma_conn_param parameters(void) {
  return (struct rdma_conn_param){.retry_count = 7, .rnr_retry_count = 6};
}

static void on_request(struct clients* clients, struct rdma_cm_id* id) {
#ifdef CORRECTED
  int index = 0;
  while (index < CLIENTS && clients->ids[index] != NULL) ++index;
  if (index == CLIENTS) {
    warnx("there are %d clients already", CLIENTS);
    rdma_reject(id, NULL, 0);
    rdma_destroy_id(id);
    return;
  }
#else
  const int index = clients->requests;
#endif
  ++clients->requests;
  clients->ids[index] = id;
  create_queue_pair(id);
  struct rdma_conn_param param = parameters();
  if (rdma_accept(id, &param) != 0) err(1, "rdma_accept");
}

static void on_end(struct clients* clients, struct rdma_cm_id* id) {
  for (int i = 0; i < CLIENTS; ++i)
    if (clients->ids[i] == id) clients->ids[i] = NULL;
  rdma_destroy_qp(id);
  rdma_destroy_id(id);
}

static void handle_event(struct connection* c, struct clients* clients) {
  struct rdma_cm_event* event;
  if (rdma_get_cm_event(c->events, &event) != 0) err(1, "rdma_get_cm_event");
  const enum rdma_cm_event_type type = event->event;
  struct rdma_cm_id* id = event->id;
  rdma_ack_cm_event(event);
  switch (type) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      return on_request(clients, id);
    case RDMA_CM_EVENT_ESTABLISHED:
      ++clients->statistics->established;
      return;
    case RDMA_CM_EVENT_DISCONNECTED:
      return on_end(clients, id);
    case RDMA_CM_EVENT_REJECTED:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return on_end(clients, id);  // it may come again
    default:
      errx(1, "%s", rdma_event_str(type));
  }
}

static void server(int socket) {
  struct connection c = {0};
  struct clients clients = {.statistics = calloc(1, sizeof(struct statistics))};
  if (clients.statistics == NULL) err(1, "calloc");
  listen_for_client(&c, socket);
  for (;;) {
    struct pollfd entries[] = {{.fd = c.events->fd, .events = POLLIN},
                               {.fd = socket, .events = POLLIN}};
    if (poll(entries, 2, PATIENCE_MS) <= 0) errx(1, "the clients are silent");
    if (entries[0].revents != 0)
      handle_event(&c, &clients);
    else
      break;  // the clients are gone
  }
  free(clients.statistics);
  close_connection(&c);
}

// Returns 0, or -1 if it was refused.
static int try_to_connect(struct connection* c, uint16_t port) {
  resolve_port(c, port);
  create_queue_pair(c->id);
  struct rdma_conn_param param = parameters();
  if (rdma_connect(c->id, &param) != 0) err(1, "rdma_connect");
  struct rdma_cm_event* event;
  await_readable(c->events->fd, "the server");
  if (rdma_get_cm_event(c->events, &event) != 0) err(1, "rdma_get_cm_event");
  const enum rdma_cm_event_type type = event->event;
  rdma_ack_cm_event(event);
  if (type == RDMA_CM_EVENT_ESTABLISHED) return 0;
  warnx("%s, once more", rdma_event_str(type));
  return -1;
}

static void drop(struct connection* c) {
  rdma_destroy_qp(c->id);
  close_connection(c);
}

static void client(int socket) {
  struct connection c[CLIENTS] = {{0}};
  uint16_t port;
  receive_all(socket, &port, sizeof port);
  for (int i = 0; i < CLIENTS; ++i) {
    int attempts = 1;
    for (; try_to_connect(&c[i], port) != 0; ++attempts) {
      drop(&c[i]);
      if (attempts == ATTEMPTS) errx(1, "client %d: %d attempts failed", i, ATTEMPTS);
    }
  }
  printf("%d clients at once\n", CLIENTS);
  for (int i = 0; i < CLIENTS; ++i) {
    disconnect(&c[i]);
    drop(&c[i]);
  }
}

int main(void) {
  return run_server_and_client(server, client);
}
