// Common parts of the programs of tests/profiles: the first device, and two of its QPs, which are
// connected to each other. The calls that a NIC may refuse are in the programs.
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 4096 };

// Prints a message, and ends the program with status 1.
static inline void fail(const char* what, int error) {
  fprintf(stderr, "failed: %s: %s\n", what, strerror(error));
  exit(1);
}

static inline void expect(int holds, const char* what) {
  if (!holds) fail(what, errno);
}

struct nic {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_device_attr attr;
  char* memory;
  struct ibv_mr* mr;
};

static inline struct nic open_nic(void) {
  struct nic nic;
  struct ibv_device** list = ibv_get_device_list(NULL);
  expect(list != NULL && list[0] != NULL, "ibv_get_device_list");
  nic.context = ibv_open_device(list[0]);
  expect(nic.context != NULL, "ibv_open_device");
  ibv_free_device_list(list);
  expect(ibv_query_device(nic.context, &nic.attr) == 0, "ibv_query_device");
  nic.pd = ibv_alloc_pd(nic.context);
  nic.cq = ibv_create_cq(nic.context, 64, NULL, NULL, 0);
  nic.memory = aligned_alloc(ROOM, ROOM);
  expect(nic.pd != NULL && nic.cq != NULL && nic.memory != NULL, "PD, CQ and memory");
  memset(nic.memory, 0, ROOM);
  nic.mr = ibv_reg_mr(nic.pd, nic.memory, ROOM, IBV_ACCESS_LOCAL_WRITE);
  expect(nic.mr != NULL, "ibv_reg_mr");
  return nic;
}

// Returns attributes of a QP with one send and one receive of one SGE each.
static inline struct ibv_qp_init_attr plain_qp(const struct nic* nic, enum ibv_qp_type type) {
  struct ibv_qp_init_attr attr = {
      .send_cq = nic->cq,
      .recv_cq = nic->cq,
      .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = type};
  return attr;
}

// Brings an RC or UC QP to RTS. Its peer is on the same device, at GID 0.
static inline void connect_to(const struct nic* nic, struct ibv_qp* qp, uint32_t peer) {
  struct ibv_port_attr port;
  expect(ibv_query_port(nic->context, 1, &port) == 0, "ibv_query_port");
  const int reliable = qp->qp_type == IBV_QPT_RC;
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                             .port_num = 1,
                             .path_mtu = port.active_mtu,
                             .dest_qp_num = peer,
                             .max_dest_rd_atomic = 1,
                             .max_rd_atomic = 1,
                             .min_rnr_timer = 1,
                             .timeout = 14,
                             .retry_cnt = 7,
                             .rnr_retry = 7,
                             .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}}};
  expect(ibv_query_gid(nic->context, 1, 0, &attr.ah_attr.grh.dgid) == 0, "ibv_query_gid");
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  expect(ibv_modify_qp(qp, &attr, mask) == 0, "ibv_modify_qp to INIT");
  attr.qp_state = IBV_QPS_RTR;
  mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (reliable) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  expect(ibv_modify_qp(qp, &attr, mask) == 0, "ibv_modify_qp to RTR");
  attr.qp_state = IBV_QPS_RTS;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (reliable)
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  expect(ibv_modify_qp(qp, &attr, mask) == 0, "ibv_modify_qp to RTS");
}

static inline int post_bytes(const struct nic* nic, struct ibv_qp* qp, enum ibv_wr_opcode opcode,
                             uint32_t size, unsigned flags) {
  struct ibv_sge sge = {(uintptr_t)nic->memory, size, nic->mr->lkey};
  struct ibv_send_wr wr = {
      .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED | flags};
  struct ibv_send_wr* bad;
  return ibv_post_send(qp, &wr, &bad);
}

static inline int post_receive(const struct nic* nic, struct ibv_qp* qp) {
  struct ibv_sge sge = {(uintptr_t)nic->memory + ROOM / 2, ROOM / 2, nic->mr->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  return ibv_post_recv(qp, &wr, &bad);
}

// Waits for the next completion.
static inline struct ibv_wc next_completion(const struct nic* nic) {
  struct ibv_wc wc;
  int count;
  while ((count = ibv_poll_cq(nic->cq, 1, &wc)) == 0) {
  }
  expect(count == 1, "ibv_poll_cq");
  return wc;
}
