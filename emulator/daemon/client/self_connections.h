// Detects a QP that is connected to itself by mistake because its peer is on another NIC. Peers on
// one NIC have different QP numbers or addresses, but the NICs of two `rocemu run` have the same
// ones. The starting PSNs of the two programs, which they exchanged, differ. If a program connects
// a QP to itself on purpose, both directions start at the same PSN.
#pragma once

#include <cstdint>
#include <map>

#include "emulator/abi/control.h"

namespace rocemu::daemon {

class SelfConnections {
 public:
  /// Notes a successful kModifyQp. Returns whether this connected the QP to itself although the
  /// program meant a peer.
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
