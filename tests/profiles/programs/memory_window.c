// bnxt_re advertises memory windows, but lacks the verb. PORTABLE: the program registers regions
// for each peer instead.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  if ((nic.attr.device_cap_flags & IBV_DEVICE_MEM_WINDOW) == 0) return 0;
  struct ibv_mw* mw = ibv_alloc_mw(nic.pd, IBV_MW_TYPE_1);
#ifndef PORTABLE
  expect(mw != NULL, "ibv_alloc_mw of a device with IBV_DEVICE_MEM_WINDOW");
#endif
  if (mw != NULL) expect(ibv_dealloc_mw(mw) == 0, "ibv_dealloc_mw");
  return 0;
}
