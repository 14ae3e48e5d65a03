// Calls each function of libibverbs and librdmacm that the sanitizer replaces.
#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

static int gets_no_completion_event(void) {
  struct ibv_device** const devices = ibv_get_device_list(NULL);
  struct ibv_context* const context = devices != NULL ? ibv_open_device(devices[0]) : NULL;
  struct ibv_comp_channel* const channel =
      context != NULL ? ibv_create_comp_channel(context) : NULL;
  if (channel == NULL || fcntl(channel->fd, F_SETFL, O_NONBLOCK) != 0) return 0;
  struct ibv_cq* cq;
  void* of_program;
  const int result = ibv_get_cq_event(channel, &cq, &of_program);
  return result == -1 && ibv_destroy_comp_channel(channel) == 0 && ibv_close_device(context) == 0;
}

static int gets_an_event_of_the_connection_manager(void) {
  struct rdma_event_channel* const channel = rdma_create_event_channel();
  struct rdma_cm_id* id;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7471)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  struct rdma_cm_event* event;
  return channel != NULL && rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0 &&
         rdma_resolve_addr(id, NULL, (struct sockaddr*)&address, 1000) == 0 &&
         rdma_get_cm_event(channel, &event) == 0 && rdma_ack_cm_event(event) == 0 &&
         rdma_destroy_id(id) == 0;
}

int use_verbs(void) {
  if (ibv_fork_init() != 0) return 3;
  if (ibv_is_fork_initialized() == IBV_FORK_DISABLED) return 4;
  if (!gets_no_completion_event()) return 5;
  return gets_an_event_of_the_connection_manager() ? 0 : 6;
}
