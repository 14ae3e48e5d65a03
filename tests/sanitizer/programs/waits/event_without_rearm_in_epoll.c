// After an event the CQ is not armed again, and the program waits for the descriptor of the channel
// in epoll_wait(2). RIGHT: it is.
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "pair.h"

static void take_event(struct pair* p, int epoll) {
  struct epoll_event event;
  check(epoll_wait(epoll, &event, 1, -1) == 1, "epoll_wait");  // wrong
  struct ibv_cq* cq;
  void* context;
  check(ibv_get_cq_event(p->b.channel, &cq, &context) == 0, "ibv_get_cq_event");
  ibv_ack_cq_events(cq, 1);
  check(ibv_get_cq_event(p->b.channel, &cq, &context) != 0, "only one event");
}

static int poll_all(struct pair* p) {
  struct ibv_wc wc;
  int count = 0;
  while (ibv_poll_cq(p->b.cq, 1, &wc) == 1) ++count;
  return count;
}

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){.with_channel = 1});
  const int flags = fcntl(p.b.channel->fd, F_GETFL);
  check(fcntl(p.b.channel->fd, F_SETFL, flags | O_NONBLOCK) == 0, "O_NONBLOCK");
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event wanted = {.events = EPOLLIN};
  check(epoll_ctl(epoll, EPOLL_CTL_ADD, p.b.channel->fd, &wanted) == 0, "epoll_ctl");
  check(ibv_req_notify_cq(p.b.cq, 0) == 0, "ibv_req_notify_cq");
  connect_pair(&p);
  for (int i = 0; i < 2; ++i) {
    check(post_receive(&p.b, i) == 0, "ibv_post_recv");
    check(post_send(&p.a, i, 1) == 0, "ibv_post_send");
    next_success(p.a.cq);
#ifdef RIGHT
    int taken = 0;
    while (taken == 0) {
      take_event(&p, epoll);
      check(ibv_req_notify_cq(p.b.cq, 0) == 0, "ibv_req_notify_cq");
      taken = poll_all(&p);
    }
#else
    take_event(&p, epoll);  // waits for ever the second time
    while (poll_all(&p) == 0) {
    }
#endif
  }
  close(epoll);
  close_pair(&p);
  return 0;
}
