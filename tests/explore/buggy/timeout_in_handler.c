// The mistake: the handler of a request fetches the client's data by RDMA READ and waits for it,
// but not for long. If it gives up, the READ still completes one day, and the handler of a later
// request takes that completion for its own.
// What a user sees: answers that belong to other data, with exit status 0.
// What provokes it: a READ is late, here since its response is lost once.
#include <err.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

#include "connection.h"

enum { REQUESTS = 3, NUMBERS = 16, HANDLER_MS = 40, ATTEMPTS = 5 };

struct answer {
  int is_busy;  // ask again
  int sum;
};

// Returns 1 with the next completion, 0 if there is none before the time is over.
static int next_completion(struct connection* c, struct ibv_wc* wc) {
  arm(c);
  while (poll_one(c, wc) == 0) {
    struct pollfd entry = {.fd = c->channel->fd, .events = POLLIN};
    if (poll(&entry, 1, HANDLER_MS) == 0) return 0;
    take_event(c);
    arm(c);
  }
  return 1;
}

static int sum_of(const int* numbers) {
  int sum = 0;
  for (int i = 0; i < NUMBERS; ++i) sum += numbers[i];
  return sum;
}

// Runs for each request, in the loop that also serves all others: it must not take long.
static struct answer handle(struct connection* reads, struct ibv_mr* mr, int* numbers,
                            struct remote theirs) {
#ifdef CORRECTED
  static uint64_t last_id;
  const uint64_t id = ++last_id;
#else
  const uint64_t id = 0;
#endif
  struct ibv_sge sge = {
      .addr = (uintptr_t)numbers, .length = NUMBERS * sizeof(int), .lkey = mr->lkey};
  struct ibv_send_wr wr = {.wr_id = id,
                           .sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_RDMA_READ,
                           .send_flags = IBV_SEND_SIGNALED},
                     *bad;
  wr.wr.rdma.remote_addr = theirs.address;
  wr.wr.rdma.rkey = theirs.rkey;
  if (ibv_post_send(reads->qp, &wr, &bad) != 0) errx(1, "ibv_post_send");
  struct ibv_wc wc;
  while (next_completion(reads, &wc)) {
    if (wc.status != IBV_WC_SUCCESS) errx(1, "READ: %s", ibv_wc_status_str(wc.status));
#ifdef CORRECTED
    if (wc.wr_id != id) continue;  // of one that was given up; READs of a QP are done in order
#endif
    return (struct answer){.sum = sum_of(numbers)};
  }
  return (struct answer){.is_busy = 1};
}

static void server(int socket) {
  struct connection reads = {0};
  struct remote theirs;
  int numbers[NUMBERS] = {0};
  open_device(&reads);
  open_queues(&reads, REQUESTS + ATTEMPTS, 1, REQUESTS + ATTEMPTS);
  struct ibv_mr* mr = register_memory(&reads, numbers, sizeof numbers);
  exchange(&reads, socket, NULL, &theirs);
  for (;;) {
    int more;
    receive_all(socket, &more, sizeof more);
    if (!more) break;
    const struct answer answer = handle(&reads, mr, numbers, theirs);
    send_all(socket, &answer, sizeof answer);
  }
  deregister(mr);
  close_connection(&reads);
}

static int ask(int socket) {
  const int more = 1;
  for (int attempt = 0; attempt < ATTEMPTS; ++attempt) {
    struct answer answer;
    send_all(socket, &more, sizeof more);
    receive_all(socket, &answer, sizeof answer);
    if (!answer.is_busy) return answer.sum;
  }
  errx(1, "the server is too busy");
}

static void client(int socket) {
  struct connection c = {0};
  int numbers[NUMBERS];
  open_device(&c);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, numbers, sizeof numbers);
  const struct remote ours = remote_of(mr);
  exchange(&c, socket, &ours, NULL);
  for (int request = 1; request <= REQUESTS; ++request) {
    for (int i = 0; i < NUMBERS; ++i) numbers[i] = request;
    printf("sum of %d times %d: %d\n", NUMBERS, request, ask(socket));
  }
  const int more = 0;
  send_all(socket, &more, sizeof more);
  char closed;
  if (recv(socket, &closed, 1, 0) < 0) err(1, "recv");
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
