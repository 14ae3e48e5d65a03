// Tests how the passive side establishes a connection (IBTA vol 1, 12.9), message by message.
#include <gtest/gtest.h>

#include "tests/support/cm_script.h"

namespace rocemu::test {
namespace {

using abi::QpState;
using engine::Counter;
using wire::CmMraed;
using wire::CmRejected;
using wire::CmRejectReason;

// Returns the REJ of a responder that stores nothing about the request.
wire::CmRej stateless_rej(CmRejectReason reason) {
  return {.local_comm_id = 0,
          .remote_comm_id = CmScript::kPeerId,
          .message = CmRejected::kReq,
          .reason = static_cast<uint16_t>(reason)};
}

TEST(CmPassive, AConnectionIsReqRepRtu) {
  CmScript s;
  s.at(0ms).app_listens();
  wire::CmReq req = s.peer_req();
  req.private_data.fill(0x77);
  s.at(1ms).wire_delivers(req).expect_told({EventKind::kRequest});
  const engine::cm::Event& event = s.last_event();
  EXPECT_EQ(event.context, CmScript::kListenerContext);
  EXPECT_TRUE(event.listener);
  EXPECT_EQ(std::get<wire::CmReq>(*event.message), req);
  EXPECT_EQ(event.route, (engine::cm::Route{.device = engine::DeviceIndex{0},
                                            .gid_index = 0,
                                            .remote = s.peer_ip(),
                                            .hop_limit = 64}));
  s.at(100s).expect_silence();  // the program may take as long as it wants to accept
  s.app_accepts().expect_sent({s.our_rep()});
  s.wire_delivers(s.peer_rtu()).expect_told({EventKind::kEstablished});
  EXPECT_EQ(s.last_event().context, CmScript::kContext);
  s.at(1000s).expect_silence();
}

TEST(CmPassive, AnswersHaveTheTransactionOfTheRequest) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  s.app_accepts().expect_sent_mads(
      {{.transaction_id = CmScript::kPeerTransaction, .message = s.our_rep()}});
}

TEST(CmPassive, ThePrivateDataOfTheReplyIsSent) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  const std::vector<uint8_t> data = pattern(197);
  engine::cm::Accept accept = s.acceptance();
  accept.private_data = data;
  s.app([&](auto& manager) { EXPECT_EQ(manager.accept(s.id(), accept), EINVAL); }).expect_silence();
  accept.private_data = std::span(data).first(196);
  s.app([&](auto& manager) { EXPECT_EQ(manager.accept(s.id(), accept), 0); });
  wire::CmRep rep = s.our_rep();
  std::copy_n(data.begin(), 196, rep.private_data.begin());
  s.expect_sent({rep});
}

// ---- The agreed attributes ----

TEST(CmPassive, TheQpGetsTheAttributesOfTheRequest) {
  CmScript s;
  s.at(0ms).app_listens();
  wire::CmReq req = s.peer_req();
  req.primary.flow_label = 0x12345;
  req.primary.traffic_class = 7;
  req.primary.hop_limit = 9;
  s.wire_delivers(req).expect_told({EventKind::kRequest});
  // librdmacm requests the QP attributes before accept().
  const auto rtr = s.manager().qp_attributes(s.id(), QpState::kRtr);
  ASSERT_TRUE(rtr);
  EXPECT_EQ(rtr->attr.dest_qp_num, CmScript::kPeerQpn);
  EXPECT_EQ(rtr->attr.path_mtu, 3u);
  EXPECT_EQ(rtr->attr.max_dest_rd_atomic, 3);  // the request's initiator depth
  EXPECT_EQ(rtr->attr.ah_attr.flow_label, 0x12345u);
  EXPECT_EQ(rtr->attr.ah_attr.traffic_class, 7);
  EXPECT_EQ(rtr->attr.ah_attr.hop_limit, 9);
  const auto rts = s.manager().qp_attributes(s.id(), QpState::kRts);
  ASSERT_TRUE(rts);
  EXPECT_EQ(rts->attr.sq_psn, CmScript::kPeerPsn);
  EXPECT_EQ(rts->attr.max_rd_atomic, 4);  // the request's responder resources
  EXPECT_EQ(rts->attr.retry_cnt, 6);
  EXPECT_EQ(rts->attr.rnr_retry, 5);
  EXPECT_EQ(rts->attr.timeout, 19);

  s.app_accepts();
  const auto mad = wire::parse_cm_mad(s.last_packet().payload);
  EXPECT_EQ(s.last_packet().traffic_class, 7);
  EXPECT_EQ(s.last_packet().hop_limit, 9);
  s.expect_sent({s.our_rep()});
  const auto after = s.manager().qp_attributes(s.id(), QpState::kRtr);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->attr.rq_psn, CmScript::kOurPsn);
  EXPECT_EQ(after->attr.max_dest_rd_atomic, 2);
  EXPECT_EQ(s.manager().qp_attributes(s.id(), QpState::kRts)->attr.max_rd_atomic, 1);
  ASSERT_TRUE(mad);
}

TEST(CmPassive, WithoutAStartingPsnTheOneOfTheAttributesIsSent) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  const uint32_t psn = s.manager().qp_attributes(s.id(), QpState::kRtr)->attr.rq_psn;
  engine::cm::Accept accept = s.acceptance();
  accept.starting_psn.reset();
  s.app([&](auto& manager) { EXPECT_EQ(manager.accept(s.id(), accept), 0); });
  wire::CmRep rep = s.our_rep();
  rep.starting_psn = wire::Psn(psn);
  s.expect_sent({rep});
}

TEST(CmPassive, UnreliableConnectionsHaveFewerAttributes) {
  CmScript s;
  s.at(0ms).app_listens();
  wire::CmReq req = s.peer_req();
  req.transport = wire::CmTransport::kUc;
  s.wire_delivers(req).expect_told({EventKind::kRequest});
  const auto mask = [&](QpState to) { return s.manager().qp_attributes(s.id(), to)->mask; };
  EXPECT_EQ(mask(QpState::kRtr), uint32_t{abi::kAttrState | abi::kAttrAv | abi::kAttrPathMtu |
                                          abi::kAttrDestQpn | abi::kAttrRqPsn});
  EXPECT_EQ(mask(QpState::kRts), uint32_t{abi::kAttrState | abi::kAttrSqPsn});
  EXPECT_EQ(s.manager().qp_attributes(s.id(), QpState::kInit)->attr.qp_access_flags,
            uint32_t{abi::kAccessRemoteWrite});
}

TEST(CmPassive, AnXrcRequestIsForAnXrcTarget) {
  CmScript s;
  s.at(0ms).app_listens();
  wire::CmReq req = s.peer_req();
  req.transport = wire::CmTransport::kExtended;
  req.extended_transport = wire::kCmExtendedXrc;
  s.wire_delivers(req).expect_told({EventKind::kRequest});
  EXPECT_EQ(s.manager().qp_attributes(s.id(), QpState::kRts)->mask,
            uint32_t{abi::kAttrState | abi::kAttrSqPsn | abi::kAttrTimeout});
}

// ---- Listeners ----

TEST(CmPassive, ARequestForAServiceThatDoesNotExistIsRejected) {
  CmScript s;
  s.at(0ms).wire_delivers(s.peer_req());
  s.expect_sent_mads({{.transaction_id = CmScript::kPeerTransaction,
                       .message = stateless_rej(CmRejectReason::kInvalidServiceId)}});
  s.app_listens();
  wire::CmReq req = s.peer_req();
  req.service_id ^= 1;
  s.wire_delivers(req).expect_sent({stateless_rej(CmRejectReason::kInvalidServiceId)});
}

TEST(CmPassive, TheMostParticularListenerGetsTheRequest) {
  using engine::cm::Listen;
  CmScript s;
  const engine::DeviceIndex here{0};
  std::vector<engine::cm::ListenerId> ids;
  s.at(0ms).app([&](auto& manager) {
    for (const Listen& listen :
         {Listen{.service_id = CmScript::kService, .context = 1},
          Listen{.service_id = CmScript::kService, .device = here, .context = 2},
          Listen{.service_id = CmScript::kService,
          .device = here,
          .address = s.device_ip(),
          .context = 3},
          Listen{.service_id = CmScript::kService,
          .address = wire::IpAddress::from_v4(127, 0, 0, 9),
          .context = 4}}) {
      const auto id = manager.listen(listen);
      ASSERT_TRUE(id);
      ids.push_back(*id);
      EXPECT_EQ(manager.listen(listen).error(), EADDRINUSE);
    }
  });
  wire::CmReq req = s.peer_req();
  for (const uint64_t context : {3u, 2u, 1u}) {
    s.wire_delivers(req).expect_told({EventKind::kRequest});
    EXPECT_EQ(s.last_event().context, context);
    EXPECT_EQ(s.last_event().listener, ids[context - 1]);
    s.manager().stop_listening(ids[context - 1]);
    ++req.local_comm_id;
    ++req.local_qpn;
  }
  wire::CmRej rej = stateless_rej(CmRejectReason::kInvalidServiceId);
  rej.remote_comm_id = req.local_comm_id;
  s.wire_delivers(req).expect_sent({rej});
}

TEST(CmPassive, RequestsThatCameBeforeTheListenerStoppedStay) {
  CmScript s;
  engine::cm::ListenerId listener;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  listener = *s.last_event().listener;
  s.app([&](auto& manager) {
    manager.stop_listening(listener);
    manager.stop_listening(listener);
  });
  s.app_accepts().expect_sent({s.our_rep()});
}

// ---- Requests that cannot be accepted (12.6.7.2) ----

TEST(CmPassive, RequestsThatCannotBeAreRejectedWithTheReason) {
  CmScript s;
  s.at(0ms).app_listens();
  const auto refused = [&](CmRejectReason reason, auto change, int line = __builtin_LINE()) {
    wire::CmReq req = s.peer_req();
    change(req);
    s.wire_delivers(req, line).expect_sent({stateless_rej(reason)}, line).expect_told({}, line);
  };
  refused(CmRejectReason::kInvalidTransportServiceType,
          [](auto& req) { req.transport = wire::CmTransport::kRd; });
  refused(CmRejectReason::kInvalidTransportServiceType,
          [](auto& req) { req.transport = wire::CmTransport::kExtended; });
  refused(CmRejectReason::kPrimaryRemoteGid,
          [](auto& req) { req.primary.remote_gid = wire::IpAddress::from_v4(127, 0, 0, 7); });
  refused(CmRejectReason::kInvalidPathMtu, [](auto& req) { req.path_mtu = 0; });
  refused(CmRejectReason::kInvalidPathMtu, [](auto& req) { req.path_mtu = 6; });
  refused(CmRejectReason::kUnsupportedRequest, [](auto& req) { req.local_qpn = 0; });
  refused(CmRejectReason::kUnsupportedRequest, [](auto& req) { req.local_qpn = 1; });
  refused(CmRejectReason::kUnsupportedRequest,
          [](auto& req) { req.primary.local_gid = *wire::parse_ip_address("fe80::1"); });
}

TEST(CmPassive, AnAlternatePathIsNotAccepted) {
  CmScript s;
  s.at(0ms).app_listens();
  wire::CmReq req = s.peer_req();
  req.alternate = req.primary;
  s.wire_delivers(req).expect_told({EventKind::kRequest});
  wire::CmRep rep = s.our_rep();
  rep.failover_accepted = 1;
  s.app_accepts().expect_sent({rep});
}

// ---- Lost and repeated messages ----

TEST(CmPassive, ARepeatedRequestIsDroppedUntilTheConsumerAnswers) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  s.wire_delivers(s.peer_req()).expect_silence().expect_counter(Counter::kMadsDropped, 1);
}

TEST(CmPassive, ARepeatedRequestGetsTheMraAgain) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  s.app_delays(25).expect_sent({s.our_mra(CmMraed::kReq, 25)});
  s.wire_delivers(s.peer_req()).expect_sent({s.our_mra(CmMraed::kReq, 25)});
  s.app_accepts().expect_sent({s.our_rep()});
}

TEST(CmPassive, ARepeatedRequestGetsTheRepAgain) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  s.app_accepts().expect_sent({s.our_rep()});
  s.at(1s).wire_delivers(s.peer_req()).expect_sent({s.our_rep()});
}

TEST(CmPassive, ARepeatedRequestGetsTheRejAgain) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  const auto rej = s.our_rej(CmRejectReason::kConsumer, CmRejected::kReq);
  s.app_rejects().expect_sent({rej});
  s.at(1s).wire_delivers(s.peer_req()).expect_sent({rej});
  // Much later, the same REQ is a new request.
  s.at(100s).wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
}

TEST(CmPassive, ARequestThatComesAfterTheConnectionStandsIsDropped) {
  CmScript s;
  s.at(0ms).reach_established_passive();
  s.wire_delivers(s.peer_req()).expect_silence();
}

TEST(CmPassive, AReplyIsRepeatedUntilItsRetriesAreUsedUpAndThenGivenUpWithARej) {
  CmScript s;
  s.at(0ms).app_listens();
  wire::CmReq req = s.peer_req();
  req.max_cm_retries = 1;
  s.wire_delivers(req).expect_told({EventKind::kRequest});
  s.app_accepts().expect_sent({s.our_rep()});
  s.at(kCmTimeout - 1ns).expect_silence();
  s.at(kCmTimeout).expect_sent({s.our_rep()});
  s.at(2 * kCmTimeout)
      .expect_sent({s.our_timeout(CmScript::kPeerId)})
      .expect_told({EventKind::kReplyError});
  // An RTU that arrives after the timeout is answered by the REJ that was already sent.
  s.wire_delivers(s.peer_rtu()).expect_sent({s.our_timeout(CmScript::kPeerId)});
  s.at(1000s).expect_silence();
}

TEST(CmPassive, TheTimeoutIsThatOfTheRequest) {
  CmScript s;
  s.at(0ms).app_listens();
  wire::CmReq req = s.peer_req();
  req.local_cm_response_timeout = 10;
  req.remote_cm_response_timeout = 3;
  req.primary.local_ack_timeout = 8;  // packet lifetime 7
  s.wire_delivers(req).expect_told({EventKind::kRequest});
  s.app_accepts().expect_sent({s.our_rep()});
  const engine::Duration timeout{(int64_t{4096} << 10) + 2 * (int64_t{4096} << 7)};
  s.at(timeout - 1ns).expect_silence();
  s.at(timeout).expect_sent({s.our_rep()});
}

TEST(CmPassive, AnMraExtendsTheTimeout) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  s.app_accepts().expect_sent({s.our_rep()});
  s.wire_delivers(s.peer_mra(CmMraed::kReq, 22)).expect_silence();
  s.wire_delivers(s.peer_mra(CmMraed::kRep, 22)).expect_told({EventKind::kRemoteMra});
  const engine::Duration longer{(int64_t{4096} << 22) + 2 * (int64_t{4096} << 18)};
  s.at(longer - 1ns).expect_silence();
  s.at(longer).expect_sent({s.our_rep()});
}

TEST(CmPassive, ARepeatedRtuIsDropped) {
  CmScript s;
  s.at(0ms).reach_established_passive();
  s.wire_delivers(s.peer_rtu()).expect_silence().expect_counter(Counter::kMadsDropped, 1);
}

TEST(CmPassive, AnRtuForNoConnectionIsRejected) {
  CmScript s;
  wire::CmRej rej = s.our_rej(CmRejectReason::kInvalidCommId, CmRejected::kNoMessage);
  s.at(0ms).wire_delivers(s.peer_rtu()).expect_sent({rej});
  s.app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  s.app_accepts().expect_sent({s.our_rep()});
  wire::CmRtu rtu = s.peer_rtu();
  rtu.local_comm_id = rej.remote_comm_id = 0x1234;
  rej.local_comm_id = s.id().value;
  s.wire_delivers(rtu).expect_sent({rej});
}

TEST(CmPassive, AnRtuBeforeTheReplyIsDropped) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  s.wire_delivers(s.peer_rtu()).expect_silence();
  s.app_accepts().expect_sent({s.our_rep()});
}

// ---- IBV_EVENT_COMM_EST ----

// ib_cm's rule, which rdma_notify(3) inherits: a message that arrives on the QP also establishes
// the connection.
TEST(CmPassive, AMessageOverTheQpIsAsGoodAsAnRtu) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  s.app([&](auto& manager) { EXPECT_EQ(manager.notify_established(s.id()), EINVAL); });
  s.app_accepts().expect_sent({s.our_rep()});
  s.app([&](auto& manager) { EXPECT_EQ(manager.notify_established(s.id()), 0); });
  s.expect_told({EventKind::kEstablished});
  EXPECT_FALSE(s.last_event().message);
  s.app([&](auto& manager) { EXPECT_EQ(manager.notify_established(s.id()), EISCONN); });
  s.at(100s).expect_silence();  // the REP is not repeated
  s.wire_delivers(s.peer_rtu()).expect_silence();
}

TEST(CmPassive, AfterTheRtuItIsConnectedAlready) {
  CmScript s;
  s.at(0ms).reach_established_passive();
  s.app([&](auto& manager) { EXPECT_EQ(manager.notify_established(s.id()), EISCONN); });
  s.app([&](auto& manager) { EXPECT_EQ(manager.notify_established({}), EINVAL); });
}

// ---- REJ ----

TEST(CmPassive, ARejOfTheReplyEndsIt) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  s.app_accepts().expect_sent({s.our_rep()});
  s.wire_delivers(s.peer_rej(CmRejectReason::kConsumer, CmRejected::kRep))
      .expect_told({EventKind::kRejected});
  s.at(1000s).expect_silence();
}

// 12.6.7.2: a sender of a REQ that gave up never learned our communication ID, so its REJ names the
// request by its CA GUID.
TEST(CmPassive, ARejectionForATimeoutFindsItsRequestByTheGuid) {
  for (const bool accepted : {false, true}) {
    CmScript s;
    s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
    if (accepted) s.app_accepts().expect_sent({s.our_rep()});
    wire::CmRej rej = s.peer_rej(CmRejectReason::kTimeout, CmRejected::kNoMessage);
    rej.remote_comm_id = 0;
    s.wire_delivers(rej).expect_silence();  // the REJ has no GUID
    rej.info_length = 8;
    rej.info = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
    s.wire_delivers(rej).expect_told({EventKind::kRejected});
    s.app([&](auto& manager) { EXPECT_EQ(manager.accept(s.id(), s.acceptance()), EINVAL); });
  }
}

TEST(CmPassive, TheConsumerMayStillRejectAfterItsReply) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  s.app_accepts().expect_sent({s.our_rep()});
  s.app_rejects().expect_sent({s.our_rej(CmRejectReason::kConsumer, CmRejected::kNoMessage)});
  s.app([&](auto& manager) { EXPECT_EQ(manager.reject(s.id()), EINVAL); });
}

// ---- Stale connections (12.9.8.3.1) ----

TEST(CmPassive, ARequestFromAQpThatIsConnectedIsStaleAndEndsTheOldConnection) {
  CmScript s;
  s.at(0ms).reach_established_passive();
  wire::CmReq req = s.peer_req();
  req.local_comm_id = 0x1234;
  wire::CmRej rej = stateless_rej(CmRejectReason::kStaleConnection);
  rej.remote_comm_id = 0x1234;
  s.wire_delivers(req).expect_sent({rej, s.our_dreq()});
  s.wire_delivers(req).expect_sent({rej});  // the old connection has not been released yet
  s.wire_delivers(s.peer_drep()).expect_told({EventKind::kDisconnectReply});
  s.wire_delivers(req).expect_told({EventKind::kRequest});
}

// 12.9.8.3.1, "already connected": a QP in timewait is not connected any more.
TEST(CmPassive, AQpWhoseConnectionIsInTimewaitMayAskAgain) {
  CmScript s;
  s.at(0ms).reach_established_passive();
  s.wire_delivers(s.peer_dreq()).expect_told({EventKind::kDisconnectRequest});
  s.app_answers_disconnect().expect_sent({s.our_drep()});
  wire::CmReq req = s.peer_req();
  ++req.local_comm_id;
  s.wire_delivers(req).expect_told({EventKind::kRequest});
}

TEST(CmPassive, TheSameRequestDuringTimewaitIsStale) {
  CmScript s;
  s.at(0ms).reach_established_passive();
  s.wire_delivers(s.peer_dreq()).expect_told({EventKind::kDisconnectRequest});
  s.app_answers_disconnect().expect_sent({s.our_drep()});
  s.wire_delivers(s.peer_req()).expect_sent({stateless_rej(CmRejectReason::kStaleConnection)});
}

TEST(CmPassive, AQpWhoseRequestWasRejectedMayAskAgainAtOnce) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  s.app_rejects().expect_sent({s.our_rej(CmRejectReason::kConsumer, CmRejected::kReq)});
  wire::CmReq req = s.peer_req();
  ++req.local_comm_id;
  s.wire_delivers(req).expect_told({EventKind::kRequest});
}

// ---- Destroyed ----

TEST(CmPassive, ARequestThatIsDestroyedIsRejectedByTheConsumer) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  const auto rej = s.our_rej(CmRejectReason::kConsumer, CmRejected::kReq);
  s.app_destroys().expect_sent({rej});
  s.wire_delivers(s.peer_req()).expect_sent({rej});
  s.at(1000s).expect_silence();
}

TEST(CmPassive, AReplyThatIsDestroyedIsRejectedByTheConsumer) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  s.app_accepts().expect_sent({s.our_rep()});
  const auto rej = s.our_rej(CmRejectReason::kConsumer, CmRejected::kNoMessage);
  s.app_destroys().expect_sent({rej});
  s.wire_delivers(s.peer_rtu()).expect_sent({rej});
  s.at(1000s).expect_silence();
}

}  // namespace
}  // namespace rocemu::test
