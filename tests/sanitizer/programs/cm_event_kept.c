// An rdma_cm_id is destroyed although its event was not acknowledged. RIGHT: it was.
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include "pair.h"

int main(void) {
  struct rdma_event_channel* channel = rdma_create_event_channel();
  check(channel != NULL, "rdma_create_event_channel");
  struct rdma_cm_id* id;
  check(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7471)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  check(rdma_resolve_addr(id, NULL, (struct sockaddr*)&to, 2000) == 0, "rdma_resolve_addr");
  struct rdma_cm_event* event;
  check(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
#ifdef RIGHT
  check(rdma_ack_cm_event(event) == 0, "rdma_ack_cm_event");
#endif
  check(rdma_destroy_id(id) == 0, "rdma_destroy_id");  // wrong
  rdma_destroy_event_channel(channel);
  return 0;
}
