// The mistake: where setting up fails, the buffer is freed, and again by the caller, who cleans up
// after every failure.
// What a user sees: glibc ends the client, "free(): double free detected in tcache 2", instead of
// the message why it could not start.
// What provokes it: ibv_create_qp fails.
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"

enum { SIZE = 64 };

struct session {
  struct connection c;
  struct ibv_mr* mr;
  char* buffer;
};

// Returns 0, or -1 with errno.
static int set_up(struct session* s) {
  s->buffer = calloc(1, SIZE);
  if (s->buffer == NULL) return -1;
  struct connection* c = &s->c;
  c->pd = ibv_alloc_pd(c->id->verbs);
  if (c->pd == NULL) goto no_pd;
  c->channel = ibv_create_comp_channel(c->id->verbs);
  if (c->channel == NULL) goto no_channel;
  c->cq = ibv_create_cq(c->id->verbs, 8, NULL, c->channel, 0);
  if (c->cq == NULL) goto no_cq;
  struct ibv_qp_init_attr init = {
      .send_cq = c->cq,
      .recv_cq = c->cq,
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
  };
  if (rdma_create_qp(c->id, c->pd, &init) != 0) goto no_qp;
  c->qp = c->id->qp;
  s->mr = ibv_reg_mr(c->pd, s->buffer, SIZE, IBV_ACCESS_LOCAL_WRITE);
  if (s->mr == NULL) goto no_mr;
  return 0;

no_mr:
  rdma_destroy_qp(c->id);
  c->qp = NULL;
no_qp:
  ibv_destroy_cq(c->cq);
  c->cq = NULL;
no_cq:
  ibv_destroy_comp_channel(c->channel);
  c->channel = NULL;
no_channel:
  ibv_dealloc_pd(c->pd);
  c->pd = NULL;
no_pd:
  free(s->buffer);
#ifdef CORRECTED
  s->buffer = NULL;
#endif
  return -1;
}

static void tear_down(struct session* s) {
  if (s->mr != NULL) ibv_dereg_mr(s->mr);
  free(s->buffer);
  close_connection(&s->c);
}

static void server(int socket) {
  struct session s = {0};
  listen_for_client(&s.c, socket);
  await_request(&s.c);
  if (set_up(&s) != 0) {
    warn("cannot serve");
    rdma_reject(s.c.id, NULL, 0);
    tear_down(&s);
    exit(1);
  }
  post_receive(&s.c, s.mr, s.buffer, SIZE, 0);
  accept_client(&s.c, NULL);
  await_success(&s.c);
  printf("received: %s\n", s.buffer);
  await_event(s.c.events, RDMA_CM_EVENT_DISCONNECTED);
  tear_down(&s);
}

static void client(int socket) {
  struct session s = {0};
  resolve_server(&s.c, socket);
  if (set_up(&s) != 0) {
    warn("cannot start");
    tear_down(&s);
    exit(1);
  }
  connect_to_server(&s.c, NULL);
  strcpy(s.buffer, "good morning");
  post_send(&s.c, s.mr, s.buffer, SIZE, 0);
  await_success(&s.c);
  disconnect(&s.c);
  tear_down(&s);
}

int main(void) {
  return run_server_and_client(server, client);
}
