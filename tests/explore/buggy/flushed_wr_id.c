// The mistake: only the last write of a batch is signaled and has a wr_id, the address of its
// batch. The others have none, "since they do not complete". When the QP fails they do.
// What a user sees: the client dies by SIGSEGV instead of saying which batch failed.
// What provokes it: any error of the QP, here a WRITE that the server refuses.
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "connection.h"

enum { BATCHES = 3, WRITES = 4, SIZE = 32 };

struct batch {
  int number;
  char texts[WRITES][SIZE];
};

static void post_batch(struct connection* c, struct ibv_mr* mr, struct batch* batch,
                       struct remote theirs) {
  for (int i = 0; i < WRITES; ++i) {
    const int is_last = i == WRITES - 1;
    struct ibv_sge sge = {.addr = (uintptr_t)batch->texts[i], .length = SIZE, .lkey = mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    wr.wr.rdma.remote_addr = theirs.address + (uint64_t)((batch->number * WRITES + i) * SIZE);
    wr.wr.rdma.rkey = theirs.rkey;
#ifdef CORRECTED
    wr.wr_id = (uintptr_t)batch;
#else
    if (is_last) wr.wr_id = (uintptr_t)batch;
#endif
    if (is_last) wr.send_flags = IBV_SEND_SIGNALED;
    errno = ibv_post_send(c->qp, &wr, &bad);
    if (errno != 0) err(1, "ibv_post_send");
  }
}

static void await_batch(struct connection* c) {
  const struct ibv_wc wc = await_completion(c);
  const struct batch* batch = (const struct batch*)(uintptr_t)wc.wr_id;
  if (wc.status != IBV_WC_SUCCESS)
    errx(1, "batch %d: %s", batch->number, ibv_wc_status_str(wc.status));
}

static void server(int socket) {
  struct connection c = {0};
  static char log[BATCHES][WRITES][SIZE];
  listen_for_client(&c, socket);
  await_request(&c);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, log, sizeof log);
  const struct remote ours = remote_of(mr);
  accept_client(&c, &ours);
  await_event(c.events, RDMA_CM_EVENT_DISCONNECTED);
  int entries = 0;
  for (int i = 0; i < BATCHES; ++i)
    for (int j = 0; j < WRITES; ++j) entries += log[i][j][0] != 0;
  printf("%d entries\n", entries);
  deregister(mr);
  close_connection(&c);
}

static void client(int socket) {
  struct connection c = {0};
  struct remote theirs;
  static struct batch batches[BATCHES];
  resolve_server(&c, socket);
  open_queues(&c, BATCHES * WRITES, 1, BATCHES * WRITES + 1);
  struct ibv_mr* mr = register_memory(&c, batches, sizeof batches);
  connect_to_server(&c, &theirs);
  for (int i = 0; i < BATCHES; ++i) {
    batches[i].number = i;
    for (int j = 0; j < WRITES; ++j) snprintf(batches[i].texts[j], SIZE, "entry %d of %d", j, i);
    post_batch(&c, mr, &batches[i], theirs);
  }
  for (int i = 0; i < BATCHES; ++i) await_batch(&c);
  disconnect(&c);
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
