// A list of sends of which only a part was posted is posted again from its head. RIGHT: from
// *bad_wr.
#include <errno.h>

#include "pair.h"

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){.max_recv_wr = 16});
  connect_pair(&p);
  for (int i = 0; i < 12; ++i) check(post_receive(&p.b, i) == 0, "ibv_post_recv");
  check(post_send(&p.a, 100, 1) == 0 && post_send(&p.a, 101, 1) == 0, "ibv_post_send");
  struct ibv_sge sge = whole(&p.a);
  sge.length = 8;
  struct ibv_send_wr list[4];
  memset(list, 0, sizeof list);
  for (int i = 0; i < 4; ++i)
    list[i] = (struct ibv_send_wr){.wr_id = i,
                                   .next = i < 3 ? &list[i + 1] : NULL,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED};
  struct ibv_send_wr* bad = NULL;
  check(ibv_post_send(p.a.qp, list, &bad) == ENOMEM && bad == &list[2], "a full queue");
  next_success(p.a.cq);
  next_success(p.a.cq);
  int posted = 2;
#ifdef RIGHT
  check(ibv_post_send(p.a.qp, bad, &bad) == 0, "the rest");
  posted += 2;
#else
  check(ibv_post_send(p.a.qp, list, &bad) == ENOMEM && bad == &list[2], "again");  // wrong
  posted += 2;
#endif
  for (int i = 0; i < posted; ++i) next_success(p.a.cq);
  close_pair(&p);
  return 0;
}
