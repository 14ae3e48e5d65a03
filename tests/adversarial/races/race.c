#include "race.h"

#include <err.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool is_right(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "right") == 0) return true;
  if (argc == 2 && strcmp(argv[1], "wrong") == 0) return false;
  errx(2, "usage: %s wrong|right", argv[0]);
}

static void open_end(struct end* e, int device) {
  struct ibv_device** devices = ibv_get_device_list(NULL);
  e->context = devices != NULL ? ibv_open_device(devices[device]) : NULL;
  if (e->context == NULL) err(1, "ibv_open_device");
  ibv_free_device_list(devices);
  e->pd = ibv_alloc_pd(e->context);
  e->channel = ibv_create_comp_channel(e->context);
  e->cq = ibv_create_cq(e->context, 4 * SLOTS, NULL, e->channel, 0);
  e->mr = ibv_reg_mr(e->pd, e->memory, sizeof e->memory, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_qp_init_attr init = {
      .send_cq = e->cq,
      .recv_cq = e->cq,
      .qp_type = IBV_QPT_RC,
      .sq_sig_all = 1,
      .cap = {.max_send_wr = SLOTS, .max_recv_wr = SLOTS, .max_send_sge = 1, .max_recv_sge = 1},
  };
  e->qp = ibv_create_qp(e->pd, &init);
  if (e->qp == NULL || e->mr == NULL) err(1, "cannot make a queue pair");
}

static void modify(struct end* e, struct ibv_qp_attr attr, enum ibv_qp_state state, int mask) {
  attr.qp_state = state;
  errno = ibv_modify_qp(e->qp, &attr, mask | IBV_QP_STATE);
  if (errno != 0) err(1, "ibv_modify_qp");
}

static void connect_to(struct end* e, const struct end* peer) {
  struct ibv_qp_attr attr = {.port_num = 1};
  modify(e, attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  attr = (struct ibv_qp_attr){.path_mtu = IBV_MTU_1024,
                              .dest_qp_num = peer->qp->qp_num,
                              .min_rnr_timer = 1,
                              .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}}};
  if (ibv_query_gid(peer->context, 1, 0, &attr.ah_attr.grh.dgid) != 0) err(1, "ibv_query_gid");
  modify(e, attr, IBV_QPS_RTR,
         IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
             IBV_QP_MIN_RNR_TIMER);
  attr = (struct ibv_qp_attr){.timeout = 14, .retry_cnt = 7, .rnr_retry = 7};
  modify(e, attr, IBV_QPS_RTS,
         IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC);
}

void open_pair(struct end* one, struct end* other) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  open_end(one, 0);
  open_end(other, 1);
  connect_to(one, other);
  connect_to(other, one);
}

void post_receive(struct end* e, uint64_t wr_id) {
  struct ibv_sge sge = {(uintptr_t)e->memory[wr_id % SLOTS], SLOT_SIZE, e->mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
  errno = ibv_post_recv(e->qp, &wr, &bad);
  if (errno != 0) err(1, "ibv_post_recv");
}

void post_send(struct end* e, uint64_t wr_id) {
  struct ibv_sge sge = {(uintptr_t)e->memory[wr_id % SLOTS], 8, e->mr->lkey};
  struct ibv_send_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
  struct ibv_send_wr* bad;
  errno = ibv_post_send(e->qp, &wr, &bad);
  if (errno != 0) err(1, "ibv_post_send");
}

bool poll_one(struct end* e, struct ibv_wc* wc) {
  const int count = ibv_poll_cq(e->cq, 1, wc);
  if (count < 0) errx(1, "ibv_poll_cq");
  if (count > 0 && wc->status != IBV_WC_SUCCESS) errx(1, "%s", ibv_wc_status_str(wc->status));
  return count > 0;
}

struct ibv_wc wait_for_one(struct end* e) {
  struct ibv_wc wc;
  while (!poll_one(e, &wc)) {
  }
  return wc;
}

pthread_t start(void* (*function)(void*), void* argument) {
  pthread_t thread;
  errno = pthread_create(&thread, NULL, function, argument);
  if (errno != 0) err(1, "pthread_create");
  return thread;
}

void join(pthread_t thread) {
  pthread_join(thread, NULL);
}

void lock(pthread_mutex_t* mutex) {
  pthread_mutex_lock(mutex);
}

void unlock(pthread_mutex_t* mutex) {
  pthread_mutex_unlock(mutex);
}

void require(bool holds, const char* what) {
  if (holds) return;
  printf("race: %s\n", what);
  fflush(stdout);
  _exit(RACE);
}
