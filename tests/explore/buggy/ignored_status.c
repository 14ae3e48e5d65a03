// The mistake: the client takes any completion of its RDMA READ for success.
// What a user sees: a balance of 0, and exit status 0.
// What provokes it: the READ completes with an error, here since the server refuses it.
#include <err.h>
#include <stdio.h>

#include "connection.h"

static void server(int socket) {
  struct connection c = {0};
  long balance = 1234;
  listen_for_client(&c, socket);
  await_request(&c);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, &balance, sizeof balance);
  const struct remote ours = remote_of(mr);
  accept_client(&c, &ours);
  await_event(c.events, RDMA_CM_EVENT_DISCONNECTED);
  deregister(mr);
  close_connection(&c);
}

static void client(int socket) {
  struct connection c = {0};
  struct remote theirs;
  long balance = 0;
  resolve_server(&c, socket);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, &balance, sizeof balance);
  connect_to_server(&c, &theirs);
  post_rdma(&c, IBV_WR_RDMA_READ, mr, &balance, sizeof balance, theirs);
  const struct ibv_wc wc = await_completion(&c);
#ifdef CORRECTED
  if (wc.status != IBV_WC_SUCCESS)
    errx(1, "cannot read the balance: %s", ibv_wc_status_str(wc.status));
#else
  (void)wc;
#endif
  printf("balance: %ld\n", balance);
  disconnect(&c);
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
