// The mistake: when a FETCH_ADD fails, the client connects again and repeats it. But it may have
// been carried out; only the answer may not have come.
// What a user sees: a counter that is too high, with exit status 0.
// What provokes it: all answers to an atomic are lost, until the client gives up.
#include <err.h>
#include <errno.h>
#include <stdio.h>

#include "connection.h"

enum { ADDITIONS = 4, ATTEMPTS = 3 };
enum request { RECONNECT, QUIT };

static void server(int socket) {
  struct connection c = {0};
  uint64_t counter = 0;
  open_device(&c);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, &counter, sizeof counter);
  const struct remote ours = remote_of(mr);
  exchange(&c, socket, &ours, NULL);
  for (;;) {
    enum request request;
    receive_all(socket, &request, sizeof request);
    if (request == QUIT) break;
    reset_queue_pair(&c);
    exchange(&c, socket, &ours, NULL);
  }
  printf("counter: %lu\n", counter);
  deregister(mr);
  close_connection(&c);
}

struct counter {
  struct connection c;
  int socket;
  struct remote theirs;
  struct ibv_mr* mr;
  uint64_t result;
};

static void post_addition(struct counter* counter) {
  struct ibv_sge sge = {.addr = (uintptr_t)&counter->result,
                        .length = sizeof counter->result,
                        .lkey = counter->mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                           .send_flags = IBV_SEND_SIGNALED},
                     *bad;
  wr.wr.atomic.remote_addr = counter->theirs.address;
  wr.wr.atomic.rkey = counter->theirs.rkey;
  wr.wr.atomic.compare_add = 1;
  errno = ibv_post_send(counter->c.qp, &wr, &bad);
  if (errno != 0) err(1, "ibv_post_send");
}

#ifdef CORRECTED
// Only this client adds, so that the value tells whether it did.
static int was_carried_out(struct counter* counter, uint64_t before) {
  post_rdma(&counter->c, IBV_WR_RDMA_READ, counter->mr, &counter->result, sizeof counter->result,
            counter->theirs);
  await_success(&counter->c);
  return counter->result != before;
}
#endif

static void add_one(struct counter* counter, uint64_t before) {
  for (int attempt = 0; attempt < ATTEMPTS; ++attempt) {
    post_addition(counter);
    const struct ibv_wc wc = await_completion(&counter->c);
    if (wc.status == IBV_WC_SUCCESS) return;
    warnx("addition %lu: %s, once more", before, ibv_wc_status_str(wc.status));
    const enum request request = RECONNECT;
    send_all(counter->socket, &request, sizeof request);
    reset_queue_pair(&counter->c);
    exchange(&counter->c, counter->socket, NULL, &counter->theirs);
#ifdef CORRECTED
    if (was_carried_out(counter, before)) return;
#endif
  }
  errx(1, "addition %lu: %d attempts failed", before, ATTEMPTS);
}

static void client(int socket) {
  struct counter counter = {.socket = socket};
  open_device(&counter.c);
  open_queues(&counter.c, 1, 1, 2);
  counter.mr = register_memory(&counter.c, &counter.result, sizeof counter.result);
  exchange(&counter.c, socket, NULL, &counter.theirs);
  for (uint64_t i = 0; i < ADDITIONS; ++i) add_one(&counter, i);
  const enum request request = QUIT;
  send_all(socket, &request, sizeof request);
  deregister(counter.mr);
  close_connection(&counter.c);
}

int main(void) {
  return run_server_and_client(server, client);
}
