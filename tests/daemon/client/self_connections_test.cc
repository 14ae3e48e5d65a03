// Tests the detection of QPs that are connected to themselves although their programs exchanged QP
// numbers.
#include "emulator/daemon/client/self_connections.h"

#include <gtest/gtest.h>

namespace rocemu::daemon {
namespace {

/// Returns a request with IBV_QP_DEST_QPN, IBV_QP_AV and IBV_QP_RQ_PSN, which ibv_modify_qp(3)
/// requires for RTR.
abi::Request to_rtr(uint32_t qpn, uint32_t dest_qpn, uint32_t rq_psn) {
  abi::Request request{};
  request.body.modify_qp.qpn = qpn;
  request.body.modify_qp.mask = abi::kAttrDestQpn | abi::kAttrAv | abi::kAttrRqPsn;
  request.body.modify_qp.attr.dest_qp_num = dest_qpn;
  request.body.modify_qp.attr.rq_psn = rq_psn;
  return request;
}

abi::Request to_rts(uint32_t qpn, uint32_t sq_psn) {
  abi::Request request{};
  request.body.modify_qp.qpn = qpn;
  request.body.modify_qp.mask = abi::kAttrSqPsn;
  request.body.modify_qp.attr.sq_psn = sq_psn;
  return request;
}

TEST(SelfConnections, AQpWhosePeerWasToHaveAnotherPsnHasMetItself) {
  SelfConnections connections;
  EXPECT_FALSE(connections.has_met_itself(to_rtr(17, 17, 100)));
  EXPECT_TRUE(connections.has_met_itself(to_rts(17, 200)));
  EXPECT_FALSE(connections.has_met_itself(to_rts(17, 200))) << "it is said once";
}

TEST(SelfConnections, AQpThatItsProgramConnectsToItselfHasOnePsnForBoth) {
  SelfConnections connections;
  EXPECT_FALSE(connections.has_met_itself(to_rtr(17, 17, 100)));
  EXPECT_FALSE(connections.has_met_itself(to_rts(17, 100)));
}

TEST(SelfConnections, AQpWithAnotherPeerHasNotMetItself) {
  SelfConnections connections;
  EXPECT_FALSE(connections.has_met_itself(to_rtr(17, 18, 100)));
  EXPECT_FALSE(connections.has_met_itself(to_rts(17, 200)));
  EXPECT_FALSE(connections.has_met_itself(to_rtr(18, 18, 100)));
  EXPECT_FALSE(connections.has_met_itself(to_rts(17, 200))) << "the other QP has not sent yet";
}

}  // namespace
}  // namespace rocemu::daemon
