// The mistake: the client does not look whether ibv_reg_mr succeeded.
// What a user sees: the client dies by SIGSEGV when the limit of locked memory is reached.
// What provokes it: ibv_reg_mr fails with ENOMEM.
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include "connection.h"

enum { RECORDS = 4 };

struct record {
  uint32_t key;
  char value[28];
};

struct table {
  uint32_t size;  // of all in bytes
  uint32_t count;
  struct record records[];
};

// Offers a table that the client reads.
static void server(int socket) {
  struct connection c = {0};
  const uint32_t size = sizeof(struct table) + RECORDS * sizeof(struct record);
  struct table* table = calloc(1, size);
  if (table == NULL) err(1, "calloc");
  table->size = size;
  table->count = RECORDS;
  for (uint32_t i = 0; i < RECORDS; ++i) {
    table->records[i].key = i;
    snprintf(table->records[i].value, sizeof table->records[i].value, "value %u", i * i);
  }
  listen_for_client(&c, socket);
  await_request(&c);
  open_queues(&c, 4, 4, 8);
  struct ibv_mr* mr = register_memory(&c, table, size);
  const struct remote ours = remote_of(mr);
  accept_client(&c, &ours);
  await_event(c.events, RDMA_CM_EVENT_DISCONNECTED);
  deregister(mr);
  free(table);
  close_connection(&c);
}

static void client(int socket) {
  struct connection c = {0};
  struct remote theirs;
  resolve_server(&c, socket);
  open_queues(&c, 4, 4, 8);
  connect_to_server(&c, &theirs);

  struct table head = {0};
  struct ibv_mr* head_mr = register_memory(&c, &head, sizeof head);
  post_rdma(&c, IBV_WR_RDMA_READ, head_mr, &head, sizeof head, theirs);
  await_success(&c);

  struct table* table = calloc(1, head.size);
  if (table == NULL) err(1, "calloc");
  struct ibv_mr* mr = ibv_reg_mr(c.pd, table, head.size, IBV_ACCESS_LOCAL_WRITE);
#ifdef CORRECTED
  if (mr == NULL) err(1, "cannot register the table's %u bytes", head.size);
#endif
  post_rdma(&c, IBV_WR_RDMA_READ, mr, table, head.size, theirs);
  await_success(&c);
  for (uint32_t i = 0; i < table->count; ++i)
    printf("%u: %s\n", table->records[i].key, table->records[i].value);

  disconnect(&c);
  deregister(mr);
  deregister(head_mr);
  free(table);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
