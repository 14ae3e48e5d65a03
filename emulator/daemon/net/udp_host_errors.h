// What the system counts of datagrams that it dropped before any socket had them: in /proc/net, for
// all sockets of the network namespace, so that not all of it needs to be RoCE.
#pragma once

#include <cstdint>

#include "emulator/engine/snapshot.h"

namespace rocemu::daemon {

struct UdpHostErrors {
  uint64_t receive = 0;   // of every kind: no room in a socket, no memory, a wrong checksum
  uint64_t checksum = 0;  // a wrong UDP checksum

  /// Since the namespace was made, over IPv4 and IPv6 together. Zeros if the system does not tell.
  static UdpHostErrors now();

  UdpHostErrors operator-(const UdpHostErrors& earlier) const {
    return {receive - earlier.receive, checksum - earlier.checksum};
  }

  void append_to(engine::CounterList& list) const {
    list.emplace_back("udp_host_receive_errors", receive);
    list.emplace_back("udp_host_checksum_errors", checksum);
  }
};

}  // namespace rocemu::daemon
