#include "connection.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// ---- Two processes ----

static pid_t start(void (*side)(int), int ours, int theirs) {
  const pid_t pid = fork();
  if (pid < 0) err(1, "fork");
  if (pid > 0) return pid;
  close(theirs);
  side(ours);
  exit(0);
}

int run_server_and_client(void (*server)(int), void (*client)(int)) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) err(1, "socketpair");
  const pid_t server_pid = start(server, sockets[0], sockets[1]);
  start(client, sockets[1], sockets[0]);
  close(sockets[0]);
  close(sockets[1]);
  int worst = 0;
  for (int ended = 0; ended < 2; ++ended) {
    int status = 0;
    const pid_t pid = wait(&status);
    if (pid < 0) err(1, "wait");
    int code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) {
      code = 128 + WTERMSIG(status);
      warnx("the %s is gone: %s", pid == server_pid ? "server" : "client",
            strsignal(WTERMSIG(status)));
    }
    if (code > worst) worst = code;
  }
  return worst;
}

void send_all(int socket, const void* data, size_t size) {
  if (send(socket, data, size, MSG_NOSIGNAL) != (ssize_t)size) err(1, "the peer is gone");
}

void receive_all(int socket, void* data, size_t size) {
  await_readable(socket, "the peer");
  const ssize_t got = recv(socket, data, size, MSG_WAITALL);
  if (got < 0) err(1, "recv");
  if ((size_t)got != size) errx(1, "the peer is gone");
}

void await_readable(int descriptor, const char* what) {
  struct pollfd entry = {.fd = descriptor, .events = POLLIN};
  const int ready = poll(&entry, 1, PATIENCE_MS);
  if (ready < 0) err(1, "poll");
  if (ready == 0) errx(1, "waited %d s in vain for %s", PATIENCE_MS / 1000, what);
}

// ---- Queues, memory, work requests ----

void open_queues(struct connection* c, uint32_t sends, uint32_t receives, int cq_entries) {
  if (c->id != NULL) c->context = c->id->verbs;
  c->pd = ibv_alloc_pd(c->context);
  if (c->pd == NULL) err(1, "ibv_alloc_pd");
  c->channel = ibv_create_comp_channel(c->context);
  if (c->channel == NULL) err(1, "ibv_create_comp_channel");
  c->cq = ibv_create_cq(c->context, cq_entries, NULL, c->channel, 0);
  if (c->cq == NULL) err(1, "ibv_create_cq");
  struct ibv_qp_init_attr init = {
      .send_cq = c->cq,
      .recv_cq = c->cq,
      .qp_type = IBV_QPT_RC,
      .cap = {.max_send_wr = sends, .max_recv_wr = receives, .max_send_sge = 1, .max_recv_sge = 1},
  };
  if (c->id == NULL) {
    c->qp = ibv_create_qp(c->pd, &init);
    if (c->qp == NULL) err(1, "ibv_create_qp");
    reset_queue_pair(c);
  } else {
    if (rdma_create_qp(c->id, c->pd, &init) != 0) err(1, "rdma_create_qp");
    c->qp = c->id->qp;
  }
}

struct ibv_mr* register_memory(struct connection* c, void* memory, size_t size) {
  struct ibv_mr* mr = ibv_reg_mr(c->pd, memory, size,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
  if (mr == NULL) err(1, "ibv_reg_mr");
  return mr;
}

void deregister(struct ibv_mr* mr) {
  errno = ibv_dereg_mr(mr);
  if (errno != 0) err(1, "ibv_dereg_mr");
}

struct remote remote_of(const struct ibv_mr* mr) {
  return (struct remote){.address = (uintptr_t)mr->addr, .rkey = mr->rkey};
}

void post_receive(struct connection* c, struct ibv_mr* mr, void* at, uint32_t size,
                  uint64_t wr_id) {
  struct ibv_sge sge = {.addr = (uintptr_t)at, .length = size, .lkey = mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
  errno = ibv_post_recv(c->qp, &wr, &bad);
  if (errno != 0) err(1, "ibv_post_recv");
}

static void post(struct connection* c, struct ibv_send_wr* wr) {
  struct ibv_send_wr* bad;
  wr->send_flags = IBV_SEND_SIGNALED;
  errno = ibv_post_send(c->qp, wr, &bad);
  if (errno != 0) err(1, "ibv_post_send");
}

void post_send(struct connection* c, struct ibv_mr* mr, void* at, uint32_t size, uint64_t wr_id) {
  struct ibv_sge sge = {.addr = (uintptr_t)at, .length = size, .lkey = mr->lkey};
  struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
  post(c, &wr);
}

void post_rdma(struct connection* c, enum ibv_wr_opcode opcode, struct ibv_mr* mr, void* at,
               uint32_t size, struct remote theirs) {
  struct ibv_sge sge = {.addr = (uintptr_t)at, .length = size, .lkey = mr->lkey};
  struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode};
  wr.wr.rdma.remote_addr = theirs.address;
  wr.wr.rdma.rkey = theirs.rkey;
  post(c, &wr);
}

// ---- Completions ----

int poll_one(struct connection* c, struct ibv_wc* wc) {
  const int count = ibv_poll_cq(c->cq, 1, wc);
  if (count < 0) errx(1, "ibv_poll_cq: the completion queue has failed");
  return count;
}

void arm(struct connection* c) {
  errno = ibv_req_notify_cq(c->cq, 0);
  if (errno != 0) err(1, "ibv_req_notify_cq");
}

void take_event(struct connection* c) {
  struct ibv_cq* cq;
  void* context;
  if (ibv_get_cq_event(c->channel, &cq, &context) != 0) err(1, "ibv_get_cq_event");
  ibv_ack_cq_events(cq, 1);
}

struct ibv_wc await_completion(struct connection* c) {
  struct ibv_wc wc;
  while (poll_one(c, &wc) == 0) {
    arm(c);
    if (poll_one(c, &wc) != 0) break;
    await_readable(c->channel->fd, "a completion");
    take_event(c);
  }
  return wc;
}

struct ibv_wc await_success(struct connection* c) {
  const struct ibv_wc wc = await_completion(c);
  if (wc.status != IBV_WC_SUCCESS)
    errx(1, "work request %lu: %s", wc.wr_id, ibv_wc_status_str(wc.status));
  return wc;
}

void close_connection(struct connection* c) {
  if (c->id != NULL && c->qp != NULL)
    rdma_destroy_qp(c->id);
  else if (c->qp != NULL && (errno = ibv_destroy_qp(c->qp)) != 0)
    err(1, "ibv_destroy_qp");
  if (c->cq != NULL && (errno = ibv_destroy_cq(c->cq)) != 0) err(1, "ibv_destroy_cq");
  if (c->channel != NULL && (errno = ibv_destroy_comp_channel(c->channel)) != 0)
    err(1, "ibv_destroy_comp_channel");
  if (c->pd != NULL && (errno = ibv_dealloc_pd(c->pd)) != 0) err(1, "ibv_dealloc_pd");
  if (c->id != NULL && rdma_destroy_id(c->id) != 0) err(1, "rdma_destroy_id");
  if (c->id == NULL && c->context != NULL && ibv_close_device(c->context) != 0)
    err(1, "ibv_close_device");
  if (c->listener != NULL && rdma_destroy_id(c->listener) != 0) err(1, "rdma_destroy_id");
  if (c->events != NULL) rdma_destroy_event_channel(c->events);
  *c = (struct connection){0};
}
