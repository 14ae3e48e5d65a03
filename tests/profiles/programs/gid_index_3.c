// The program uses GID 3, which on mlx5 is the IPv4 address with RoCE v2. NICs without RoCE v1 have
// this GID at index 1. PORTABLE: the program searches for the entry.
#include "device.h"

static int is_ipv4_v2(const struct ibv_gid_entry* entry) {
  static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return entry->gid_type == IBV_GID_TYPE_ROCE_V2 && memcmp(entry->gid.raw, prefix, 12) == 0;
}

int main(void) {
  struct nic nic = open_nic();
  struct ibv_gid_entry entries[64];
  const ssize_t count = ibv_query_gid_table(nic.context, entries, 64, 0);
  expect(count > 0, "ibv_query_gid_table");
  int found = 0;
  for (ssize_t i = 0; i < count; ++i) {
#ifndef PORTABLE
    if (entries[i].gid_index != 3) continue;
#endif
    found |= is_ipv4_v2(&entries[i]);
  }
  expect(found, "no IPv4 address with RoCE v2 there");
  return 0;
}
