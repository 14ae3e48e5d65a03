// NVIDIA/nccl#622: the program takes a port with a LID for an InfiniBand port; irdma's RoCE port
// has LID 1. PORTABLE: the program checks the link layer.
#include "device.h"

int main(void) {
  struct nic nic = open_nic();
  struct ibv_port_attr port;
  expect(ibv_query_port(nic.context, 1, &port) == 0, "ibv_query_port");
#ifdef PORTABLE
  const int is_roce = port.link_layer != IBV_LINK_LAYER_INFINIBAND;
#else
  const int is_roce = port.lid == 0;
#endif
  expect(is_roce, "the port is one of InfiniBand: no GID is used");
  return 0;
}
