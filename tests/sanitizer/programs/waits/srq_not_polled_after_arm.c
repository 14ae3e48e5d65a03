// A CQ is armed while its QP has a receive in an SRQ, and then the program waits without a poll.
// RIGHT: it polls in between.
#include <pthread.h>
#include <unistd.h>

#include "pair.h"

static struct pair p;
static struct ibv_qp* sender;

static void* send_later(void* unused) {
  usleep(20000);
  struct ibv_sge sge = whole(&p.a);
  struct ibv_send_wr wr = {
      .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
  struct ibv_send_wr* bad;
  check(ibv_post_send(sender, &wr, &bad) == 0, "ibv_post_send");
  next_success(p.a.cq);
  return unused;
}

int main(void) {
  open_pair(&p, (struct pair_options){.with_channel = 1});
  struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
  struct ibv_srq* srq = ibv_create_srq(p.pd, &srq_attr);
  check(srq != NULL, "ibv_create_srq");
  struct ibv_qp_init_attr attr = {.send_cq = p.b.cq,
                                  .recv_cq = p.b.cq,
                                  .srq = srq,
                                  .cap = {.max_send_wr = 1, .max_send_sge = 1},
                                  .qp_type = IBV_QPT_RC};
  struct ibv_qp* receiver = ibv_create_qp(p.pd, &attr);
  check(receiver != NULL, "ibv_create_qp");
  attr.send_cq = attr.recv_cq = p.a.cq;
  attr.srq = NULL;
  sender = ibv_create_qp(p.pd, &attr);
  check(sender != NULL, "ibv_create_qp");
  connect_qp(receiver, sender->qp_num);
  connect_qp(sender, receiver->qp_num);
  struct ibv_sge sge = whole(&p.b);
  struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1};
  struct ibv_recv_wr* bad;
  check(ibv_post_srq_recv(srq, &wr, &bad) == 0, "ibv_post_srq_recv");
  check(ibv_req_notify_cq(p.b.cq, 0) == 0, "ibv_req_notify_cq");
#ifdef RIGHT
  struct ibv_wc wc;
  check(ibv_poll_cq(p.b.cq, 1, &wc) == 0, "ibv_poll_cq");
#endif
  pthread_t thread;
  check(pthread_create(&thread, NULL, send_later, NULL) == 0, "pthread_create");
  struct ibv_cq* cq;
  void* context;
  check(ibv_get_cq_event(p.b.channel, &cq, &context) == 0, "ibv_get_cq_event");  // wrong
  ibv_ack_cq_events(cq, 1);
  check(pthread_join(thread, NULL) == 0, "pthread_join");
  next_success(p.b.cq);
  check(ibv_destroy_qp(receiver) == 0, "ibv_destroy_qp");
  check(ibv_destroy_qp(sender) == 0, "ibv_destroy_qp");
  check(ibv_destroy_srq(srq) == 0, "ibv_destroy_srq");
  close_pair(&p);
  return 0;
}
