// The mistake: the client writes a page by one QP and announces it at once by another. Nothing
// orders two QPs.
// What a user sees: the server takes an old page for the new one, now and then, with exit status 0.
// What provokes it: the WRITE is lost once and comes by the ACK timeout, 67 ms after the SEND.
#include <stdio.h>
#include <string.h>

#include "connection.h"

enum { PAGES = 3, SIZE = 512 };

static void server(int socket) {
  struct connection data = {0}, control = {0};
  char page[SIZE] = "";
  int number;
  open_device(&data);
  open_device(&control);
  open_queues(&data, 1, 1, 2);
  open_queues(&control, PAGES, PAGES, 2 * PAGES);
  struct ibv_mr* page_mr = register_memory(&data, page, SIZE);
  struct ibv_mr* number_mr = register_memory(&control, &number, sizeof number);
  const struct remote ours = remote_of(page_mr);
  post_receive(&control, number_mr, &number, sizeof number, 0);
  exchange(&data, socket, &ours, NULL);
  exchange(&control, socket, NULL, NULL);
  for (int i = 0; i < PAGES; ++i) {
    await_success(&control);  // an announcement has come
    printf("page %d: %s\n", number, page);
    if (i + 1 < PAGES) post_receive(&control, number_mr, &number, sizeof number, 0);
    char done = 1;
    send_all(socket, &done, sizeof done);
  }
  char closed;  // the client closes first: what it wrote last may be under way
  receive_all(socket, &closed, sizeof closed);
  deregister(page_mr);
  deregister(number_mr);
  close_connection(&data);
  close_connection(&control);
}

static void client(int socket) {
  struct connection data = {0}, control = {0};
  struct remote theirs;
  char page[SIZE] = "";
  int number;
  open_device(&data);
  open_device(&control);
  open_queues(&data, 1, 1, 2);
  open_queues(&control, 1, 1, 2);
  struct ibv_mr* page_mr = register_memory(&data, page, SIZE);
  struct ibv_mr* number_mr = register_memory(&control, &number, sizeof number);
  exchange(&data, socket, NULL, &theirs);
  exchange(&control, socket, NULL, NULL);
  for (number = 0; number < PAGES; ++number) {
    memset(page, 0, SIZE);
    snprintf(page, SIZE, "what page %d says", number);
    post_rdma(&data, IBV_WR_RDMA_WRITE, page_mr, page, SIZE, theirs);
#ifdef CORRECTED
    await_success(&data);
    post_send(&control, number_mr, &number, sizeof number, 0);
#else
    post_send(&control, number_mr, &number, sizeof number, 0);
    await_success(&data);
#endif
    await_success(&control);
    char done;
    receive_all(socket, &done, sizeof done);
  }
  const char closed = 1;
  send_all(socket, &closed, sizeof closed);
  deregister(page_mr);
  deregister(number_mr);
  close_connection(&data);
  close_connection(&control);
}

int main(void) {
  return run_server_and_client(server, client);
}
