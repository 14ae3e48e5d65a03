// ofiwg/libfabric#10692: the program creates a CQ for 65536 completions; rxe has CQs for at most
// 32767. PORTABLE: the program takes max_cqe into account.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  int entries = 65536;
#ifdef PORTABLE
  if (entries > nic.attr.max_cqe) entries = nic.attr.max_cqe;
#endif
  expect(ibv_create_cq(nic.context, entries, NULL, NULL, 0) != NULL, "ibv_create_cq");
  return 0;
}
