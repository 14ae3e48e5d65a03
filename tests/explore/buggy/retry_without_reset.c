// The mistake: when a READ fails the client posts it again, to a QP that is in the error state.
// What a user sees: the client tries for ever, and a server that is well again does not help.
// What provokes it: a READ fails once, here since the server's NIC has trouble.
#include <err.h>
#include <stdio.h>
#include <time.h>

#include "connection.h"

enum { BLOCKS = 4, SIZE = 64, ATTEMPTS = 5 };
enum request { RECONNECT, QUIT };

static void server(int socket) {
  struct connection c = {0};
  static char blocks[BLOCKS][SIZE];
  for (int i = 0; i < BLOCKS; ++i) snprintf(blocks[i], SIZE, "block %d", i);
  open_device(&c);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, blocks, sizeof blocks);
  const struct remote ours = remote_of(mr);
  exchange(&c, socket, &ours, NULL);
  for (;;) {
    enum request request;
    receive_all(socket, &request, sizeof request);
    if (request == QUIT) break;
    reset_queue_pair(&c);
    exchange(&c, socket, &ours, NULL);
  }
  deregister(mr);
  close_connection(&c);
}

static void pause_for(int ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&time, NULL);
}

static void read_block(struct connection* c, int socket, struct ibv_mr* mr, char* block, int index,
                       struct remote* theirs) {
#ifdef CORRECTED
  for (int attempt = 0; attempt < ATTEMPTS; ++attempt) {
#else
  (void)socket;
  for (;;) {
#endif
    const struct remote at = {theirs->address + (uint64_t)(index * SIZE), theirs->rkey};
    post_rdma(c, IBV_WR_RDMA_READ, mr, block, SIZE, at);
    if (await_completion(c).status == IBV_WC_SUCCESS) return;
    pause_for(100);
#ifdef CORRECTED
    const enum request request = RECONNECT;
    send_all(socket, &request, sizeof request);
    reset_queue_pair(c);
    exchange(c, socket, NULL, theirs);
  }
  errx(1, "block %d: %d attempts failed", index, ATTEMPTS);
#else
  }
#endif
}

static void client(int socket) {
  struct connection c = {0};
  struct remote theirs;
  char block[SIZE] = "";
  open_device(&c);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, block, sizeof block);
  exchange(&c, socket, NULL, &theirs);
  for (int i = 0; i < BLOCKS; ++i) {
    read_block(&c, socket, mr, block, i, &theirs);
    printf("%s\n", block);
  }
  const enum request request = QUIT;
  send_all(socket, &request, sizeof request);
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
