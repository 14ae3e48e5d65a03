// The counters of a device on UDP, in addition to those of the engine. Most count the frames that
// the system did not send or did not keep, by reason. Their names are part of the user interface
// (`rocemu show --json`).
#pragma once

#include <cstdint>

#include "emulator/engine/snapshot.h"

namespace rocemu::daemon {

// clang-format off
/// A row for each counter; users see it as "udp_" and its name.
#define ROCEMU_UDP_COUNTERS(X)                                                                    \
  X(sends) /* system calls that sent frames */                                                    \
  X(receives) /* datagrams received, as many frames as one may hold */                            \
  X(dropped_send_queue) /* the network did not take frames as fast as they came */                \
  X(dropped_unreachable)                                                                          \
  X(dropped_too_big) /* for the path's MTU */                                                     \
  X(dropped_refused) /* by the system for another reason, such as a firewall */                   \
  X(icmp_errors) /* of frames that had left: the peer's host has no daemon */                     \
  X(receive_overruns) /* datagrams that a socket dropped: most came faster than they were read,   \
                         a few had a wrong UDP checksum */                                        \
  X(dropped_unverified) /* --strict-icrc: the IP header cannot be known */
// clang-format on

struct UdpCounters {
#define ROCEMU_COUNTER(name) uint64_t name = 0;
  ROCEMU_UDP_COUNTERS(ROCEMU_COUNTER)
#undef ROCEMU_COUNTER

  void append_to(engine::CounterList& list) const {
#define ROCEMU_COUNTER(name) list.emplace_back("udp_" #name, name);
    ROCEMU_UDP_COUNTERS(ROCEMU_COUNTER)
#undef ROCEMU_COUNTER
  }
};

}  // namespace rocemu::daemon
