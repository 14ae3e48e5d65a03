// As in lost_wakeup_in_poll.c, with select(2). RIGHT: the program polls the CQ first.
#include <sys/select.h>

#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){.with_channel = 1});
  connect_pair(&p);
  check(post_receive(&p.b, 1) == 0, "ibv_post_recv");
  check(post_send(&p.a, 1, 1) == 0, "ibv_post_send");
  next_success(p.a.cq);  // the message has arrived
  check(ibv_req_notify_cq(p.b.cq, 0) == 0, "ibv_req_notify_cq");
  struct ibv_wc wc;
#ifdef RIGHT
  check(ibv_poll_cq(p.b.cq, 1, &wc) == 1, "ibv_poll_cq");
  check(post_receive(&p.b, 2) == 0, "ibv_post_recv");
  check(post_send(&p.a, 2, 1) == 0, "ibv_post_send");
#endif
  fd_set reads;
  FD_ZERO(&reads);
  FD_SET(p.b.channel->fd, &reads);
  check(select(p.b.channel->fd + 1, &reads, NULL, NULL, NULL) == 1, "select");  // wrong
  struct ibv_cq* cq;
  void* context;
  check(ibv_get_cq_event(p.b.channel, &cq, &context) == 0, "ibv_get_cq_event");
  ibv_ack_cq_events(cq, 1);
  check(ibv_poll_cq(p.b.cq, 1, &wc) == 1, "ibv_poll_cq");
  next_success(p.a.cq);
  close_pair(&p);
  return 0;
}
