// Notices a QP that is connected to itself because its peer has another NIC. With another NIC the
// peer would have another number, or be at another address. Both NICs of two `rocemu run` have the
// same, down to the numbers of the QPs; the starting PSNs, which the two programs have exchanged,
// are not. A QP that a program connects to itself has one for both.
#pragma once

#include <cstdint>
#include <map>

#include "emulator/abi/control.h"

namespace rocemu::daemon {

class SelfConnections {
 public:
  /// Takes a kModifyQp that has succeeded. Returns whether its QP met itself in place of its peer.
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
