// The two ways to connect: by librdmacm, and by a socket.
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdlib.h>

#include "connection.h"

// ---- By librdmacm ----

static struct sockaddr_in loopback(uint16_t port) {
  return (struct sockaddr_in){
      .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static struct rdma_cm_event* next_event(struct rdma_event_channel* events,
                                        enum rdma_cm_event_type type) {
  await_readable(events->fd, rdma_event_str(type));
  struct rdma_cm_event* event;
  if (rdma_get_cm_event(events, &event) != 0) err(1, "rdma_get_cm_event");
  if (event->event != type)
    errx(1, "%s, status %d, instead of %s", rdma_event_str(event->event), event->status,
         rdma_event_str(type));
  return event;
}

struct rdma_cm_id* await_event(struct rdma_event_channel* events, enum rdma_cm_event_type type) {
  struct rdma_cm_event* event = next_event(events, type);
  struct rdma_cm_id* id = event->id;
  rdma_ack_cm_event(event);
  return id;
}

static void open_events(struct connection* c, struct rdma_cm_id** id) {
  c->events = rdma_create_event_channel();
  if (c->events == NULL) err(1, "rdma_create_event_channel");
  if (rdma_create_id(c->events, id, c, RDMA_PS_TCP) != 0) err(1, "rdma_create_id");
}

void listen_for_client(struct connection* c, int socket) {
  struct sockaddr_in address = loopback(0);
  open_events(c, &c->listener);
  if (rdma_bind_addr(c->listener, (struct sockaddr*)&address) != 0) err(1, "rdma_bind_addr");
  if (rdma_listen(c->listener, 4) != 0) err(1, "rdma_listen");
  const uint16_t port = rdma_get_src_port(c->listener);
  send_all(socket, &port, sizeof port);
}

void await_request(struct connection* c) {
  c->id = await_event(c->events, RDMA_CM_EVENT_CONNECT_REQUEST);
}

void resolve_server(struct connection* c, int socket) {
  uint16_t port;
  receive_all(socket, &port, sizeof port);
  resolve_port(c, port);
}

void resolve_port(struct connection* c, uint16_t port) {
  struct sockaddr_in address = loopback(port);
  open_events(c, &c->id);
  if (rdma_resolve_addr(c->id, NULL, (struct sockaddr*)&address, 2000) != 0)
    err(1, "rdma_resolve_addr");
  await_event(c->events, RDMA_CM_EVENT_ADDR_RESOLVED);
  if (rdma_resolve_route(c->id, 2000) != 0) err(1, "rdma_resolve_route");
  await_event(c->events, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static struct rdma_conn_param parameters(void) {
  return (struct rdma_conn_param){
      .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 6};
}

void accept_client(struct connection* c, const struct remote* ours) {
  struct rdma_conn_param param = parameters();
  param.private_data = ours;
  param.private_data_len = ours != NULL ? sizeof *ours : 0;
  if (rdma_accept(c->id, &param) != 0) err(1, "rdma_accept");
  await_event(c->events, RDMA_CM_EVENT_ESTABLISHED);
}

void connect_to_server(struct connection* c, struct remote* theirs) {
  struct rdma_conn_param param = parameters();
  if (rdma_connect(c->id, &param) != 0) err(1, "rdma_connect");
  struct rdma_cm_event* event = next_event(c->events, RDMA_CM_EVENT_ESTABLISHED);
  if (theirs != NULL) {
    if (event->param.conn.private_data_len < sizeof *theirs) errx(1, "the server offers nothing");
    *theirs = *(const struct remote*)event->param.conn.private_data;
  }
  rdma_ack_cm_event(event);
}

void disconnect(struct connection* c) {
  if (rdma_disconnect(c->id) != 0) err(1, "rdma_disconnect");
  await_event(c->events, RDMA_CM_EVENT_DISCONNECTED);
}

// ---- By a socket ----

void open_device(struct connection* c) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  if (devices == NULL || devices[0] == NULL) errx(1, "no RDMA device");
  c->context = ibv_open_device(devices[0]);
  if (c->context == NULL) err(1, "ibv_open_device");
  ibv_free_device_list(devices);
}

static void modify(struct ibv_qp* qp, struct ibv_qp_attr attr, int mask, const char* state) {
  errno = ibv_modify_qp(qp, &attr, mask);
  if (errno != 0) err(1, "ibv_modify_qp to %s", state);
}

void reset_queue_pair(struct connection* c) {
  modify(c->qp, (struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE, "RESET");
  modify(c->qp,
         (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
                              .port_num = 1,
                              .qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                                                 IBV_ACCESS_REMOTE_ATOMIC},
         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
}

void exchange(struct connection* c, int socket, const struct remote* ours, struct remote* theirs) {
  struct {
    uint32_t qp_num;
    uint32_t psn;
    union ibv_gid gid;
    struct remote memory;
  } here = {.qp_num = c->qp->qp_num, .psn = c->qp->qp_num * 4096 & 0xffffff}, there;
  if (ibv_query_gid(c->context, 1, 0, &here.gid) != 0) err(1, "ibv_query_gid");
  if (ours != NULL) here.memory = *ours;

  send_all(socket, &here, sizeof here);
  receive_all(socket, &there, sizeof there);
  modify(
      c->qp,
      (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                           .path_mtu = IBV_MTU_1024,
                           .dest_qp_num = there.qp_num,
                           .rq_psn = there.psn,
                           .max_dest_rd_atomic = 4,
                           .min_rnr_timer = 20,  // 10 ms
                           .ah_attr = {.is_global = 1,
                                       .grh = {.dgid = there.gid, .sgid_index = 0, .hop_limit = 64},
                                       .port_num = 1}},
      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
      "RTR");
  modify(c->qp,
         (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                              .timeout = 14,  // 67 ms
                              .retry_cnt = 7,
                              .rnr_retry = 6,
                              .sq_psn = here.psn,
                              .max_rd_atomic = 4},
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "RTS");
  // Nobody sends before both are ready.
  char ready = 1;
  send_all(socket, &ready, sizeof ready);
  receive_all(socket, &ready, sizeof ready);
  if (theirs != NULL) *theirs = there.memory;
}
