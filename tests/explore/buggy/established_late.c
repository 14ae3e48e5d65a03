// The mistake: the server makes a session when RDMA_CM_EVENT_ESTABLISHED comes, and believes that
// no message can come before it.
// What a user sees: the server dies by SIGSEGV, on a busy network once in many connections.
// What provokes it: an RTU is lost. The client is connected and sends; the server's QP receives
// although its ESTABLISHED is yet to come.
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"

enum { SIZE = 64 };

struct session {
  int messages;
  char last[SIZE];
};

static void handle_message(struct session* session, const char* text) {
  ++session->messages;
  memcpy(session->last, text, SIZE);
}

static void drain(struct connection* c, struct session* session, struct ibv_mr* mr, char* buffer) {
  struct ibv_wc wc;
  while (poll_one(c, &wc) > 0) {
    if (wc.status != IBV_WC_SUCCESS) errx(1, "%s", ibv_wc_status_str(wc.status));
    if (wc.opcode != IBV_WC_RECV) continue;
    handle_message(session, buffer);
    post_send(c, mr, buffer, SIZE, 0);  // an echo
  }
}

static void server(int socket) {
  struct connection c = {0};
  struct session* session = NULL;
  static char buffer[SIZE];
  listen_for_client(&c, socket);
  await_request(&c);
  open_queues(&c, 4, 4, 8);
  struct ibv_mr* mr = register_memory(&c, buffer, SIZE);
  post_receive(&c, mr, buffer, SIZE, 0);
#ifdef CORRECTED
  session = calloc(1, sizeof *session);
  if (session == NULL) err(1, "calloc");
#endif
  arm(&c);
  struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 6};
  if (rdma_accept(c.id, &param) != 0) err(1, "rdma_accept");

  for (int connected = 1; connected;) {
    struct pollfd entries[] = {{.fd = c.events->fd, .events = POLLIN},
                               {.fd = c.channel->fd, .events = POLLIN}};
    const int ready = poll(entries, 2, PATIENCE_MS);
    if (ready <= 0) errx(1, "the client is silent");
    if (entries[0].revents != 0) {
      struct rdma_cm_event* event;
      if (rdma_get_cm_event(c.events, &event) != 0) err(1, "rdma_get_cm_event");
      if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
#ifndef CORRECTED
        session = calloc(1, sizeof *session);
        if (session == NULL) err(1, "calloc");
#endif
      } else if (event->event == RDMA_CM_EVENT_DISCONNECTED) {
        connected = 0;
      } else if (event->event != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
        errx(1, "%s", rdma_event_str(event->event));
      }
      rdma_ack_cm_event(event);
    }
    if (entries[1].revents != 0) {
      take_event(&c);
      arm(&c);
      drain(&c, session, mr, buffer);
    }
  }
  printf("%d message, the last: %s\n", session->messages, session->last);
  free(session);
  deregister(mr);
  close_connection(&c);
}

static void client(int socket) {
  struct connection c = {0};
  static char buffers[2][SIZE] = {"how are you"};
  resolve_server(&c, socket);
  open_queues(&c, 4, 4, 8);
  struct ibv_mr* mr = register_memory(&c, buffers, sizeof buffers);
  post_receive(&c, mr, buffers[1], SIZE, 1);
  connect_to_server(&c, NULL);
  post_send(&c, mr, buffers[0], SIZE, 0);
  await_success(&c);
  await_success(&c);
  disconnect(&c);
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
