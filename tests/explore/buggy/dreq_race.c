// The mistake: when RDMA_CM_EVENT_DISCONNECTED comes the server closes the connection, although
// messages that were received before may not have been polled yet.
// What a user sees: the last record is missing, with exit status 0.
// What provokes it: the completion of the last receive is late, and the DREQ overtakes it.
#include <err.h>
#include <poll.h>
#include <stdio.h>

#include "connection.h"

enum { RECORDS = 5 };

static void poll_records(struct connection* c, const int* records, int* count, int* sum) {
  struct ibv_wc wc;
  while (poll_one(c, &wc) > 0) {
    if (wc.status != IBV_WC_SUCCESS) continue;  // flushed, or the client will see the error
    ++*count;
    *sum += records[wc.wr_id];
  }
}

#ifdef CORRECTED
// What was received completes before what is flushed: all is there when the last receive is.
static void poll_until_flushed(struct connection* c, const int* records, int* count, int* sum) {
  for (;;) {
    const struct ibv_wc wc = await_completion(c);
    if (wc.status == IBV_WC_SUCCESS) {
      ++*count;
      *sum += records[wc.wr_id];
    }
    if (wc.wr_id == RECORDS) return;
  }
}
#endif

static void server(int socket) {
  struct connection c = {0};
  int records[RECORDS + 1];  // no record comes into the last one
  int count = 0, sum = 0;
  listen_for_client(&c, socket);
  await_request(&c);
  open_queues(&c, 1, RECORDS + 1, RECORDS + 2);
  struct ibv_mr* mr = register_memory(&c, records, sizeof records);
  for (int i = 0; i <= RECORDS; ++i) post_receive(&c, mr, &records[i], sizeof(int), (uint64_t)i);
  arm(&c);
  accept_client(&c, NULL);

  for (int connected = 1; connected;) {
    struct pollfd entries[] = {{.fd = c.channel->fd, .events = POLLIN},
                               {.fd = c.events->fd, .events = POLLIN}};
    if (poll(entries, 2, PATIENCE_MS) <= 0) errx(1, "the client is silent");
    if (entries[0].revents != 0) {
      take_event(&c);
      arm(&c);
      poll_records(&c, records, &count, &sum);
    } else if (entries[1].revents != 0) {
      await_event(c.events, RDMA_CM_EVENT_DISCONNECTED);
      rdma_disconnect(c.id);
      connected = 0;
    }
  }
#ifdef CORRECTED
  poll_until_flushed(&c, records, &count, &sum);
#endif
  printf("%d records, sum %d\n", count, sum);
  deregister(mr);
  close_connection(&c);
}

static void client(int socket) {
  struct connection c = {0};
  int record;
  resolve_server(&c, socket);
  open_queues(&c, 1, 1, 2);
  struct ibv_mr* mr = register_memory(&c, &record, sizeof record);
  connect_to_server(&c, NULL);
  for (record = 1; record <= RECORDS; ++record) {
    post_send(&c, mr, &record, sizeof record, 0);
    await_success(&c);
  }
  disconnect(&c);
  deregister(mr);
  close_connection(&c);
}

int main(void) {
  return run_server_and_client(server, client);
}
