// A thread handles the events of librdmacm. When the address is resolved it wakes the main thread,
// acknowledges the event, and counts it in the connection. The main thread gives up on the
// connection: rdma_destroy_id(3) waits for the acknowledgement, and not for the count.
// Depth 2: the connection is freed after rdma_ack_cm_event(3) and before the count.
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <semaphore.h>
#include <stddef.h>

#include "race.h"

static struct connection {
  struct rdma_cm_id* id;
  volatile bool is_freed;
  volatile int events;
  sem_t resolved;
} connection;
static struct rdma_event_channel* channel;
static bool right;

static void count(void) {
  require(!connection.is_freed, "the handler uses a connection that was freed");
  ++connection.events;
}

static void* handle(void* unused) {
  struct rdma_cm_event* event;
  if (rdma_get_cm_event(channel, &event) != 0) err(1, "rdma_get_cm_event");
  if (right) count();
  sem_post(&connection.resolved);
  rdma_ack_cm_event(event);
  if (!right) count();
  return unused;
}

int main(int argc, char** argv) {
  right = is_right(argc, argv);
  sem_init(&connection.resolved, 0, 0);
  channel = rdma_create_event_channel();
  if (channel == NULL || rdma_create_id(channel, &connection.id, NULL, RDMA_PS_TCP) != 0)
    err(1, "rdma_create_id");
  const pthread_t handler = start(handle, NULL);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(1)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (rdma_resolve_addr(connection.id, NULL, (struct sockaddr*)&to, 1000) != 0)
    err(1, "rdma_resolve_addr");
  sem_wait(&connection.resolved);
  rdma_destroy_id(connection.id);
  connection.is_freed = true;
  join(handler);
  rdma_destroy_event_channel(channel);
}
