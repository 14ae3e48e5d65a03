#include "pair.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <time.h>

uint8_t rnr_retry = 7;

void check(int is_right, const char* what) {
  if (is_right) return;
  fprintf(stderr, "failed: %s\n", what);
  exit(1);
}

struct ibv_context* open_first_device(void) {
  struct ibv_device** list = ibv_get_device_list(NULL);
  check(list != NULL && list[0] != NULL, "ibv_get_device_list");
  struct ibv_context* context = ibv_open_device(list[0]);
  check(context != NULL, "ibv_open_device");
  ibv_free_device_list(list);
  return context;
}

static struct ibv_ah_attr to_own_device(struct ibv_context* context) {
  struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}};
  check(ibv_query_gid(context, 1, 0, &attr.grh.dgid) == 0, "ibv_query_gid");
  return attr;
}

static void open_side(struct pair* p, struct side* s, struct pair_options o) {
  if (o.with_channel) {
    s->channel = ibv_create_comp_channel(p->context);
    check(s->channel != NULL, "ibv_create_comp_channel");
  }
  s->cq = ibv_create_cq(p->context, o.cqe ? o.cqe : 16, NULL, s->channel, 0);
  check(s->cq != NULL, "ibv_create_cq");
  s->buffer = aligned_alloc(BUFFER_SIZE, BUFFER_SIZE);
  memset(s->buffer, 0, BUFFER_SIZE);
  s->mr = ibv_reg_mr(p->pd, s->buffer, BUFFER_SIZE,
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  check(s->mr != NULL, "ibv_reg_mr");
  struct ibv_qp_init_attr attr = {.send_cq = s->cq,
                                  .recv_cq = s->cq,
                                  .cap = {.max_send_wr = o.max_send_wr ? o.max_send_wr : 4,
                                          .max_recv_wr = o.max_recv_wr ? o.max_recv_wr : 4,
                                          .max_send_sge = o.max_send_sge ? o.max_send_sge : 1,
                                          .max_recv_sge = 1,
                                          .max_inline_data = o.max_inline},
                                  .qp_type = o.type ? o.type : IBV_QPT_RC,
                                  .sq_sig_all = o.all_signaled};
  s->qp = ibv_create_qp(p->pd, &attr);
  check(s->qp != NULL, "ibv_create_qp");
}

void open_pair(struct pair* p, struct pair_options options) {
  memset(p, 0, sizeof *p);
  p->context = open_first_device();
  p->pd = ibv_alloc_pd(p->context);
  check(p->pd != NULL, "ibv_alloc_pd");
  struct ibv_ah_attr attr = to_own_device(p->context);
  p->ah = ibv_create_ah(p->pd, &attr);
  check(p->ah != NULL, "ibv_create_ah");
  open_side(p, &p->a, options);
  open_side(p, &p->b, options);
}

static void close_side(struct side* s) {
  if (s->qp != NULL) check(ibv_destroy_qp(s->qp) == 0, "ibv_destroy_qp");
  if (s->mr != NULL) check(ibv_dereg_mr(s->mr) == 0, "ibv_dereg_mr");
  check(ibv_destroy_cq(s->cq) == 0, "ibv_destroy_cq");
  if (s->channel != NULL)
    check(ibv_destroy_comp_channel(s->channel) == 0, "ibv_destroy_comp_channel");
  free(s->buffer);
}

void close_pair(struct pair* p) {
  close_side(&p->a);
  close_side(&p->b);
  if (p->ah != NULL) check(ibv_destroy_ah(p->ah) == 0, "ibv_destroy_ah");
  check(ibv_dealloc_pd(p->pd) == 0, "ibv_dealloc_pd");
  check(ibv_close_device(p->context) == 0, "ibv_close_device");
}

void move_to(struct ibv_qp* qp, enum ibv_qp_state state) {
  struct ibv_qp_attr attr = {.qp_state = state};
  check(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0, "ibv_modify_qp");
}

void connect_qp(struct ibv_qp* qp, uint32_t to) {
  const int is_datagram = qp->qp_type == IBV_QPT_UD;
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                             .port_num = 1,
                             .qkey = 0x11111111,
                             .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                IBV_ACCESS_REMOTE_ATOMIC};
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  mask |= is_datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  check(ibv_modify_qp(qp, &attr, mask) == 0, "to INIT");
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_1024;
  attr.dest_qp_num = to;
  attr.ah_attr = to_own_device(qp->context);
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 1;
  mask = IBV_QP_STATE;
  if (!is_datagram)
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  check(ibv_modify_qp(qp, &attr, mask) == 0, "to RTR");
  attr.qp_state = IBV_QPS_RTS;
  attr.max_rd_atomic = 1;
  attr.timeout = 10;
  attr.retry_cnt = 7;
  attr.rnr_retry = rnr_retry;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (!is_datagram)
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  check(ibv_modify_qp(qp, &attr, mask) == 0, "to RTS");
}

void connect_pair(struct pair* p) {
  connect_qp(p->a.qp, p->b.qp->qp_num);
  connect_qp(p->b.qp, p->a.qp->qp_num);
}

struct ibv_sge whole(struct side* s) {
  return (struct ibv_sge){(uintptr_t)s->buffer, BUFFER_SIZE, s->mr->lkey};
}

int post_send(struct side* s, uint64_t wr_id, int signaled) {
  struct ibv_sge sge = whole(s);
  sge.length = 8;
  struct ibv_send_wr wr = {.wr_id = wr_id,
                           .sg_list = &sge,
                           .num_sge = 1,
                           .opcode = IBV_WR_SEND,
                           .send_flags = signaled ? IBV_SEND_SIGNALED : 0};
  struct ibv_send_wr* bad;
  return ibv_post_send(s->qp, &wr, &bad);
}

int post_receive(struct side* s, uint64_t wr_id) {
  struct ibv_sge sge = whole(s);
  struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  return ibv_post_recv(s->qp, &wr, &bad);
}

struct ibv_wc next_completion(struct ibv_cq* cq) {
  struct ibv_wc wc;
  const time_t end = time(NULL) + 20;
  int n;
  while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) check(time(NULL) < end, "no completion came");
  check(n == 1, "ibv_poll_cq");
  return wc;
}

struct ibv_wc next_success(struct ibv_cq* cq) {
  struct ibv_wc wc = next_completion(cq);
  check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
  return wc;
}
