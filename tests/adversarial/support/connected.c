#include "connected.h"

#include <stdio.h>

enum { DEPTH = 64, PAGE = 4096 };

static struct ibv_pd* pd;

void expect(int holds, const char* message) {
  if (holds) return;
  fprintf(stderr, "failed: %s\n", message);
  exit(1);
}

static struct ibv_context* device(void) {
  static struct ibv_context* context;
  if (context != NULL) return context;
  struct ibv_device** list = ibv_get_device_list(NULL);
  expect(list != NULL && list[0] != NULL, "ibv_get_device_list");
  context = ibv_open_device(list[0]);
  expect(context != NULL, "ibv_open_device");
  ibv_free_device_list(list);
  pd = ibv_alloc_pd(context);
  expect(pd != NULL, "ibv_alloc_pd");
  return context;
}

static struct end make_end(void) {
  struct ibv_context* context = device();
  struct end end = {.send_cq = ibv_create_cq(context, DEPTH, NULL, NULL, 0),
                    .recv_cq = ibv_create_cq(context, DEPTH, NULL, NULL, 0)};
  expect(end.send_cq != NULL && end.recv_cq != NULL, "ibv_create_cq");
  struct ibv_qp_init_attr attr = {.send_cq = end.send_cq,
                                  .recv_cq = end.recv_cq,
                                  .cap = {.max_send_wr = DEPTH,
                                          .max_recv_wr = DEPTH,
                                          .max_send_sge = 1,
                                          .max_recv_sge = 1,
                                          .max_inline_data = 64},
                                  .qp_type = IBV_QPT_RC};
  end.qp = ibv_create_qp(pd, &attr);
  expect(end.qp != NULL, "ibv_create_qp");
  return end;
}

static void connect_to(struct ibv_qp* qp, uint32_t peer) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                             .port_num = 1,
                             .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                IBV_ACCESS_REMOTE_ATOMIC,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = peer,
                             .max_dest_rd_atomic = 4,
                             .max_rd_atomic = 4,
                             .min_rnr_timer = 1,
                             .timeout = 14,
                             .retry_cnt = 7,
                             .rnr_retry = 7,
                             .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}}};
  expect(ibv_query_gid(device(), 1, 0, &attr.ah_attr.grh.dgid) == 0, "ibv_query_gid");
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  expect(ibv_modify_qp(qp, &attr, mask) == 0, "ibv_modify_qp to INIT");
  attr.qp_state = IBV_QPS_RTR;
  mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  expect(ibv_modify_qp(qp, &attr, mask) == 0, "ibv_modify_qp to RTR");
  attr.qp_state = IBV_QPS_RTS;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC;
  expect(ibv_modify_qp(qp, &attr, mask) == 0, "ibv_modify_qp to RTS");
}

struct pair connect_pair(void) {
  struct pair pair = {make_end(), make_end()};
  connect_to(pair.a.qp, pair.b.qp->qp_num);
  connect_to(pair.b.qp, pair.a.qp->qp_num);
  return pair;
}

void fail_qp(struct ibv_qp* qp) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
  expect(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0, "ibv_modify_qp to ERR");
}

struct ibv_mr* make_region(size_t size, int access) {
  device();
  const size_t pages = (size + PAGE - 1) / PAGE * PAGE;
  void* memory = aligned_alloc(PAGE, pages);
  expect(memory != NULL, "aligned_alloc");
  memset(memory, 0, pages);
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, pages,
                                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | access);
  expect(mr != NULL, "ibv_reg_mr");
  return mr;
}

void post(struct end* end, struct request request) {
  struct ibv_sge sge = {(uintptr_t)request.from->addr + request.from_offset, (uint32_t)request.size,
                        request.from->lkey};
  struct ibv_send_wr wr = {.wr_id = request.wr_id,
                           .sg_list = &sge,
                           .num_sge = 1,
                           .opcode = request.opcode,
                           .send_flags = (unsigned)request.flags};
  const uint64_t remote = request.to != NULL ? (uintptr_t)request.to->addr + request.to_offset : 0;
  const uint32_t rkey = request.to != NULL ? request.to->rkey : 0;
  if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    wr.wr.atomic.remote_addr = remote;
    wr.wr.atomic.rkey = rkey;
    wr.wr.atomic.compare_add = request.value;
  } else if (request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
    wr.wr.atomic.remote_addr = remote;
    wr.wr.atomic.rkey = rkey;
    wr.wr.atomic.compare_add = request.compare;
    wr.wr.atomic.swap = request.value;
  } else {
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = rkey;
  }
  struct ibv_send_wr* bad;
  expect(ibv_post_send(end->qp, &wr, &bad) == 0, "ibv_post_send");
}

void post_receive(struct end* end, struct ibv_mr* to, size_t size) {
  struct ibv_sge sge = {(uintptr_t)to->addr, (uint32_t)size, to->lkey};
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  expect(ibv_post_recv(end->qp, &wr, &bad) == 0, "ibv_post_recv");
}

struct ibv_wc wait_for_any(struct ibv_cq* cq) {
  struct ibv_wc wc;
  int count;
  while ((count = ibv_poll_cq(cq, 1, &wc)) == 0) {
  }
  expect(count == 1, "ibv_poll_cq");
  return wc;
}

struct ibv_wc wait_for(struct ibv_cq* cq) {
  const struct ibv_wc wc = wait_for_any(cq);
  expect(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
  return wc;
}

void wait_for_byte(const uint8_t* byte) {
  while (__atomic_load_n(byte, __ATOMIC_ACQUIRE) == 0) {
  }
}

uint64_t load(const void* word) {
  return __atomic_load_n((const uint64_t*)word, __ATOMIC_ACQUIRE);
}
