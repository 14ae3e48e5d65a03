// The mistake: the sender's messages are small enough to be sent inline, so it uses one buffer for
// all of them at once. But when the device has no QP with that much inline data, it takes one
// without, and the NIC then reads the buffer later.
// What a user sees: the same line several times, and others never, with exit status 0.
// What provokes it: ibv_create_qp fails for a QP with inline data.
#include <err.h>
#include <errno.h>
#include <stdio.h>

#include "connection.h"

enum { LINES = 4, SIZE = 256 };

static void create_queues(struct connection* c, uint32_t* inline_size) {
  c->pd = ibv_alloc_pd(c->context);
  if (c->pd == NULL) err(1, "ibv_alloc_pd");
  c->channel = ibv_create_comp_channel(c->context);
  if (c->channel == NULL) err(1, "ibv_create_comp_channel");
  c->cq = ibv_create_cq(c->context, 2 * LINES, NULL, c->channel, 0);
  if (c->cq == NULL) err(1, "ibv_create_cq");
  struct ibv_qp_init_attr init = {.send_cq = c->cq,
                                  .recv_cq = c->cq,
                                  .qp_type = IBV_QPT_RC,
                                  .cap = {.max_send_wr = LINES,
                                          .max_recv_wr = LINES,
                                          .max_send_sge = 1,
                                          .max_recv_sge = 1,
                                          .max_inline_data = SIZE}};
  c->qp = ibv_create_qp(c->pd, &init);
  if (c->qp == NULL) {
    init.cap.max_inline_data = 0;
    c->qp = ibv_create_qp(c->pd, &init);
  }
  if (c->qp == NULL) err(1, "ibv_create_qp");
  *inline_size = init.cap.max_inline_data;
  reset_queue_pair(c);
}

static void post_line(struct connection* c, struct ibv_mr* mr, const char* line,
                      uint32_t inline_size) {
  struct ibv_sge sge = {.addr = (uintptr_t)line, .length = SIZE, .lkey = mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_SEND,
                           .send_flags = IBV_SEND_SIGNALED},
                     *bad;
  if (SIZE <= inline_size) wr.send_flags |= IBV_SEND_INLINE;
  errno = ibv_post_send(c->qp, &wr, &bad);
  if (errno != 0) err(1, "ibv_post_send");
}

static void client(int socket) {
  struct connection c = {0};
  uint32_t inline_size;
#ifdef CORRECTED
  char lines[LINES][SIZE] = {{0}};
#else
  char lines[1][SIZE] = {{0}};
#endif
  open_device(&c);
  create_queues(&c, &inline_size);
  struct ibv_mr* mr = register_memory(&c, lines, sizeof lines);
  exchange(&c, socket, NULL, NULL);
  for (int i = 0; i < LINES; ++i) {
#ifdef CORRECTED
    char* line = SIZE <= inline_size ? lines[0] : lines[i];
#else
    char* line = lines[0];
#endif
    snprintf(line, SIZE, "line %d", i);
    post_line(&c, mr, line, inline_size);
  }
  for (int i = 0; i < LINES; ++i) await_success(&c);
  deregister(mr);
  close_connection(&c);
}

static void server(int socket) {
  struct connection c = {0};
  uint32_t inline_size;
  char lines[LINES][SIZE] = {{0}};
  open_device(&c);
  create_queues(&c, &inline_size);
  struct ibv_mr* mr = register_memory(&c, lines, sizeof lines);
  for (int i = 0; i < LINES; ++i) post_receive(&c, mr, lines[i], SIZE, (uint64_t)i);
  exchange(&c, socket, NULL, NULL);
  for (int i = 0; i < LINES; ++i) printf("%s\n", lines[await_success(&c).wr_id]);
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
