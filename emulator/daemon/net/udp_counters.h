// What a device on UDP counts beside the engine's counters: the ways in which the system did not
// take or keep a frame. Names are part of the user interface (`rocemu show --json`).
#pragma once

#include <cstdint>

#include "emulator/engine/snapshot.h"

namespace rocemu::daemon {

struct UdpCounters {
  uint64_t sends = 0;               // system calls that sent frames
  uint64_t receives = 0;            // datagrams received, as many frames as one may hold
  uint64_t dropped_send_queue = 0;  // the network did not take frames as fast as they came
  uint64_t dropped_unreachable = 0;
  uint64_t dropped_too_big = 0;     // for the path's MTU
  uint64_t dropped_refused = 0;     // by the system for another reason, such as a firewall
  uint64_t icmp_errors = 0;         // of frames that had left: the peer's host has no daemon
  uint64_t receive_overruns = 0;    // datagrams that a socket dropped: most came faster than they
                                    // were read, a few had a wrong UDP checksum
  uint64_t dropped_unverified = 0;  // --strict-icrc: the IP header came to nobody's knowledge

  void append_to(engine::CounterList& list) const {
    list.emplace_back("udp_sends", sends);
    list.emplace_back("udp_receives", receives);
    list.emplace_back("udp_dropped_send_queue", dropped_send_queue);
    list.emplace_back("udp_dropped_unreachable", dropped_unreachable);
    list.emplace_back("udp_dropped_too_big", dropped_too_big);
    list.emplace_back("udp_dropped_refused", dropped_refused);
    list.emplace_back("udp_icmp_errors", icmp_errors);
    list.emplace_back("udp_receive_overruns", receive_overruns);
    list.emplace_back("udp_dropped_unverified", dropped_unverified);
  }
};

}  // namespace rocemu::daemon
