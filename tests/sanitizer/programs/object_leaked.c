// A program ends with a CQ. RIGHT: it destroys it.
#include "pair.h"

int main(void) {
  struct ibv_context* context = open_first_device();
  struct ibv_cq* cq = ibv_create_cq(context, 1, NULL, NULL, 0);  // wrong
  check(cq != NULL, "ibv_create_cq");
#ifdef RIGHT
  check(ibv_destroy_cq(cq) == 0, "ibv_destroy_cq");
  check(ibv_close_device(context) == 0, "ibv_close_device");
#endif
  return 0;
}
