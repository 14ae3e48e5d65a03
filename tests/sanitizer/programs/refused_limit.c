// More is asked for than is allowed, in four ways. RIGHT: as much as is allowed, and a queue that
// is merely full.
#include <errno.h>

#include "pair.h"

static int post_sges(struct side* s, int count, unsigned flags) {
  struct ibv_sge sges[4];
  for (int i = 0; i < 4; ++i) sges[i] = whole(s);
  for (int i = 0; i < 4; ++i) sges[i].length = flags & IBV_SEND_INLINE ? 16 : 8;
  struct ibv_send_wr wr = {.sg_list = sges,
                           .num_sge = count,
                           .opcode = IBV_WR_SEND,
                           .send_flags = IBV_SEND_SIGNALED | flags};
  struct ibv_send_wr* bad;
  return ibv_post_send(s->qp, &wr, &bad);
}

int main(void) {
  struct pair p;
  open_pair(&p, (struct pair_options){.max_send_sge = 2, .max_inline = 32});
  connect_pair(&p);
  for (int i = 0; i < 4; ++i) check(post_receive(&p.b, i) == 0, "ibv_post_recv");
#ifdef RIGHT
  check(post_receive(&p.b, 4) == ENOMEM, "a full queue");
  check(post_sges(&p.a, 2, 0) == 0 && post_sges(&p.a, 2, IBV_SEND_INLINE) == 0, "ibv_post_send");
  next_success(p.a.cq);
  next_success(p.a.cq);
#else
  struct ibv_qp_init_attr attr = {.send_cq = p.a.cq,
                                  .recv_cq = p.a.cq,
                                  .cap = {.max_send_wr = 1u << 30, .max_recv_wr = 1},
                                  .qp_type = IBV_QPT_RC};
  check(ibv_create_qp(p.pd, &attr) == NULL, "a QP of that size");
  check(ibv_create_cq(p.context, 1 << 30, NULL, NULL, 0) == NULL, "a CQ of that size");
  check(post_sges(&p.a, 3, 0) == EINVAL, "three SGEs");
  check(post_sges(&p.a, 2, 0) == 0, "ibv_post_send");
  next_success(p.a.cq);
#endif
  close_pair(&p);
  return 0;
}
