// A completion comes between the last poll and the request for notification, and the program waits
// for the descriptor of the channel in poll(2). RIGHT: it also waits for a pipe, or for a time.
#include <poll.h>
#include <unistd.h>

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
  check(ibv_poll_cq(p.a.cq, 1, &wc) == 0, "no other completion");
  int ends[2];
  check(pipe(ends) == 0, "pipe");
  check(write(ends[1], "x", 1) == 1, "write");
  struct pollfd waited[2] = {{.fd = p.b.channel->fd, .events = POLLIN}, {.fd = -1}};
#ifdef RIGHT
  check(poll(waited, 1, 1) == 0, "poll for a millisecond");
  waited[1] = (struct pollfd){.fd = ends[0], .events = POLLIN};
  check(poll(waited, 2, -1) == 1, "poll for two descriptors");
  check(waited[1].revents == POLLIN, "the pipe");
  while (ibv_poll_cq(p.b.cq, 1, &wc) == 0) {
  }
#else
  check(poll(waited, 2, -1) == 1, "poll");  // wrong
#endif
  close(ends[0]);
  close(ends[1]);
  close_pair(&p);
  return 0;
}
