// Sends three messages to itself, and uses verbs wrongly in the way that its argument names:
//   stops        no wrong use: it ends at the first error
//   posts on     after an error completion it posts to the same QP
//   always       even without an error, it deregisters memory that a receive names
//   asks         after an error, it requests a larger CQ than is possible, which is a warning
#include <stdio.h>

#include "pair.h"

static const char* manner;

static int is_manner(const char* name) {
  return strcmp(manner, name) == 0;
}

// Returns whether all messages were sent.
static int send_all(struct pair* p) {
  int is_good = 1;
  for (uint64_t i = 1; i <= 3; ++i) {
    check(post_receive(&p->b, i) == 0, "ibv_post_recv");
    check(post_send(&p->a, i, 1) == 0, "ibv_post_send");  // wrong
    if (next_completion(p->a.cq).status == IBV_WC_SUCCESS) {
      next_success(p->b.cq);
      continue;
    }
    is_good = 0;
    if (!is_manner("posts on")) break;
  }
  return is_good;
}

int main(int argc, char** argv) {
  manner = argc > 1 ? argv[1] : "stops";
  struct pair p;
  open_pair(&p, (struct pair_options){0});
  connect_pair(&p);
  const int is_good = send_all(&p);
  if (is_manner("always")) {
    check(post_receive(&p.b, 4) == 0, "ibv_post_recv");
    check(ibv_dereg_mr(p.b.mr) == 0, "ibv_dereg_mr");
    p.b.mr = NULL;
  }
  if (!is_good && is_manner("asks"))
    check(ibv_create_cq(p.context, 1 << 30, NULL, NULL, 0) == NULL, "a CQ of 2^30 is refused");
  puts(is_good ? "sent all" : "failed");
  if (is_manner("stops") && is_good) close_pair(&p);
  return is_good ? 0 : 1;
}
