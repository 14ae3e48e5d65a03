// Detects a QP that is connected to itself because its peer has another NIC. With one NIC the peer
// would have another number, or another address. The NICs of two `rocemu run` have the same
// addresses and QP numbers. The starting PSNs, which the two programs have exchanged, differ, while
// a QP that a program deliberately connects to itself has the same PSN for both directions.
#pragma once

#include <cstdint>
#include <map>

#include "emulator/abi/control.h"

namespace rocemu::daemon {

class SelfConnections {
 public:
  /// Handles a successful kModifyQp. Returns whether its QP was connected to itself in place of its
  /// peer.
  bool has_met_itself(const abi::Request& request) {
    const auto& modify = request.body.modify_qp;
    constexpr uint32_t kPeer = abi::kAttrDestQpn | abi::kAttrAv | abi::kAttrRqPsn;
    if ((modify.mask & kPeer) == kPeer && modify.attr.dest_qp_num == modify.qpn) {
      expected_psns_[modify.qpn] = modify.attr.rq_psn;
    }
    if ((modify.mask & abi::kAttrSqPsn) == 0) return false;
    const auto found = expected_psns_.find(modify.qpn);
    if (found == expected_psns_.end()) return false;
    const bool differs = found->second != modify.attr.sq_psn;
    expected_psns_.erase(found);
    return differs;
  }

 private:
  std::map<uint32_t, uint32_t> expected_psns_;  // of the QPs that are connected to themselves
};

}  // namespace rocemu::daemon
