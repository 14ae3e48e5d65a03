// The system's counters of datagrams that it dropped before a socket received them. /proc/net has
// them for all sockets of the network namespace, so they can include datagrams that are not RoCE.
#pragma once

#include <cstdint>

#include "emulator/engine/snapshot.h"

namespace rocemu::daemon {

struct UdpHostErrors {
  uint64_t receive = 0;   // of every kind: no space in a socket, no memory, a wrong checksum
  uint64_t checksum = 0;  // a wrong UDP checksum

  /// Returns the counters since the namespace was created, for IPv4 and IPv6 together; zeros if the
  /// system does not report them.
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
