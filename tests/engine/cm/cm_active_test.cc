// Tests how the active side establishes a connection (IBTA vol 1, 12.9), message by message.
#include <gtest/gtest.h>

#include "tests/support/cm_script.h"

namespace rocemu::test {
namespace {

using abi::QpState;
using engine::Counter;
using engine::cm::QpAttributes;
using wire::CmMraed;
using wire::CmRejected;
using wire::CmRejectReason;

QpAttributes attributes(CmScript& s, QpState to) {
  const auto result = s.manager().qp_attributes(s.id(), to);
  EXPECT_TRUE(result);
  return result ? *result : QpAttributes();
}

TEST(CmActive, AConnectionIsReqRepRtu) {
  CmScript s;
  s.at(0ms).app_connects().expect_sent({s.our_req()});
  s.at(5ms).wire_delivers(s.peer_rep()).expect_told({EventKind::kReply});
  EXPECT_EQ(s.last_event().context, CmScript::kContext);
  EXPECT_EQ(std::get<wire::CmRep>(*s.last_event().message), s.peer_rep());
  s.at(6ms).app_is_ready().expect_sent({s.our_rtu()});
  s.at(1000s).expect_silence();
}

TEST(CmActive, TheRequestsPrivateDataIsSentAndThatOfTheReplyIsTold) {
  CmScript s;
  const std::vector<uint8_t> data = pattern(92);
  engine::cm::Connect connect = s.request();
  connect.private_data = data;
  s.at(0ms).app_connects(connect);
  wire::CmReq req = s.our_req();
  std::copy(data.begin(), data.end(), req.private_data.begin());
  s.expect_sent({req});
  wire::CmRep rep = s.peer_rep();
  rep.private_data.fill(0x5a);
  s.wire_delivers(rep).expect_told({EventKind::kReply});
  EXPECT_EQ(std::get<wire::CmRep>(*s.last_event().message), rep);
}

TEST(CmActive, WhatDoesNotFitIntoARequestIsRefused) {
  CmScript s;
  const std::vector<uint8_t> data(93);
  const auto refused = [&](auto change) {
    engine::cm::Connect connect = s.request();
    change(connect);
    s.app([&](auto& manager) {
       const auto id = manager.connect(connect);
       ASSERT_FALSE(id);
       EXPECT_EQ(id.error(), EINVAL);
     }).expect_silence();
  };
  refused([&](auto& c) { c.private_data = data; });
  refused([](auto& c) { c.retry_count = 8; });
  refused([](auto& c) { c.rnr_retry_count = 8; });
  refused([](auto& c) { c.max_retries = 16; });
  refused([](auto& c) { c.response_timeout = 32; });
  refused([](auto& c) { c.local_ack_timeout = 32; });
  refused([](auto& c) { c.qp_type = abi::QpType::kUd; });
  refused([](auto& c) { c.route.device.value = 1; });
  refused([](auto& c) { c.route.gid_index = 2; });
  refused([](auto& c) { c.route.remote = *wire::parse_ip_address("fe80::1"); });
}

TEST(CmActive, TheRequestNamesTheTransport) {
  const auto req_of = [](abi::QpType type) {
    CmScript s;
    engine::cm::Connect connect = s.request();
    connect.qp_type = type;
    s.at(0ms).app_connects(connect);
    wire::CmReq req = s.our_req();
    if (type == abi::QpType::kUc) req.transport = wire::CmTransport::kUc;
    if (type == abi::QpType::kXrcSend) {
      req.transport = wire::CmTransport::kExtended;
      req.extended_transport = wire::kCmExtendedXrc;
    }
    s.expect_sent({req});
  };
  req_of(abi::QpType::kRc);
  req_of(abi::QpType::kUc);
  req_of(abi::QpType::kXrcSend);
}

// ---- The agreed attributes ----

TEST(CmActive, TheQpGetsTheAttributesOfTheReply) {
  CmScript s;
  s.at(0ms).app_connects().expect_sent({s.our_req()});
  const QpAttributes init = attributes(s, QpState::kInit);
  EXPECT_EQ(init.mask, uint32_t{abi::kAttrState | abi::kAttrPkeyIndex | abi::kAttrPort |
                                abi::kAttrAccessFlags});
  EXPECT_EQ(init.attr.port_num, 1);
  EXPECT_EQ(s.manager().qp_attributes(s.id(), QpState::kRtr).error(), EINVAL);
  s.wire_delivers(s.peer_rep()).expect_told({EventKind::kReply});

  const QpAttributes rtr = attributes(s, QpState::kRtr);
  EXPECT_EQ(rtr.mask,
            uint32_t{abi::kAttrState | abi::kAttrAv | abi::kAttrPathMtu | abi::kAttrDestQpn |
                     abi::kAttrRqPsn | abi::kAttrMaxDestRdAtomic | abi::kAttrMinRnrTimer});
  EXPECT_EQ(rtr.attr.dest_qp_num, CmScript::kPeerQpn);
  // 12.7: the starting PSN in a message is that of the first packet that its sender will receive.
  EXPECT_EQ(rtr.attr.rq_psn, CmScript::kOurPsn);
  EXPECT_EQ(rtr.attr.path_mtu, 3u);
  EXPECT_EQ(rtr.attr.max_dest_rd_atomic, 1);  // the reply's initiator depth
  EXPECT_TRUE(
      std::equal(s.peer_ip().bytes.begin(), s.peer_ip().bytes.end(), rtr.attr.ah_attr.dgid));
  EXPECT_EQ(rtr.attr.ah_attr.is_global, 1);
  EXPECT_EQ(rtr.attr.ah_attr.hop_limit, 64);

  const QpAttributes rts = attributes(s, QpState::kRts);
  EXPECT_EQ(rts.mask, uint32_t{abi::kAttrState | abi::kAttrSqPsn | abi::kAttrTimeout |
                               abi::kAttrRetryCnt | abi::kAttrRnrRetry | abi::kAttrMaxQpRdAtomic});
  EXPECT_EQ(rts.attr.sq_psn, CmScript::kPeerPsn);
  EXPECT_EQ(rts.attr.max_rd_atomic, 2);  // the reply's responder resources
  EXPECT_EQ(rts.attr.retry_cnt, 6);
  EXPECT_EQ(rts.attr.rnr_retry, 4);  // the reply's
  // two packet lifetimes of 2^18 and an ACK delay of 2^15, rounded up to 2^19
  EXPECT_EQ(rts.attr.timeout, 19);
}

TEST(CmActive, TheAckTimeoutHasRoomForThePeersDelay) {
  for (const auto& [delay, timeout] :
       {std::pair{0, 19}, {17, 19}, {18, 20}, {19, 20}, {20, 21}, {21, 21}, {25, 25}, {31, 31}}) {
    CmScript s;
    s.at(0ms).app_connects().expect_sent({s.our_req()});
    wire::CmRep rep = s.peer_rep();
    rep.target_ack_delay = static_cast<uint8_t>(delay);
    s.wire_delivers(rep).expect_told({EventKind::kReply});
    EXPECT_EQ(attributes(s, QpState::kRts).attr.timeout, timeout) << "delay " << delay;
  }
}

TEST(CmActive, AReplyCannotExceedTheRequestsOffer) {
  CmScript s;
  s.at(0ms).app_connects().expect_sent({s.our_req()});
  wire::CmRep rep = s.peer_rep();
  rep.responder_resources = 200;
  rep.initiator_depth = 200;
  s.wire_delivers(rep).expect_told({EventKind::kReply});
  EXPECT_EQ(attributes(s, QpState::kRtr).attr.max_dest_rd_atomic, 4);
  EXPECT_EQ(attributes(s, QpState::kRts).attr.max_rd_atomic, 3);
}

// ---- Lost and repeated messages ----

TEST(CmActive, ARequestIsRepeatedUntilItsRetriesAreUsedUpAndThenGivenUpWithARej) {
  CmScript s;
  engine::cm::Connect connect = s.request();
  connect.max_retries = 2;
  s.at(0ms).app_connects(connect);
  wire::CmReq req = s.our_req();
  req.max_cm_retries = 2;
  s.expect_sent({req});
  s.at(kCmTimeout - 1ns).expect_silence();
  s.at(kCmTimeout).expect_sent({req});
  s.at(2 * kCmTimeout).expect_sent({req});
  s.at(3 * kCmTimeout).expect_sent({s.our_timeout(0)}).expect_told({EventKind::kRequestError});
  s.expect_counter(Counter::kCmRetries, 2);
  // A REP that arrives after the timeout is answered by the REJ that was already sent.
  s.wire_delivers(s.peer_rep()).expect_sent({s.our_timeout(0)});
  s.at(1000s).expect_silence();
  EXPECT_FALSE(s.manager().exists(s.id()));
  s.wire_delivers(s.peer_rep())
      .expect_sent({s.our_rej(CmRejectReason::kInvalidCommId, CmRejected::kRep)});
}

TEST(CmActive, WithoutRetriesTheFirstTimeoutIsTheLast) {
  CmScript s;
  engine::cm::Connect connect = s.request();
  connect.max_retries = 0;
  s.at(0ms).app_connects(connect);
  wire::CmReq req = s.our_req();
  req.max_cm_retries = 0;
  s.expect_sent({req});
  s.at(kCmTimeout).expect_sent({s.our_timeout(0)}).expect_told({EventKind::kRequestError});
}

TEST(CmActive, AReplyToARepeatedRequestIsAsGood) {
  CmScript s;
  s.at(0ms).app_connects().expect_sent({s.our_req()});
  s.at(kCmTimeout).expect_sent({s.our_req()});
  s.wire_delivers(s.peer_rep()).expect_told({EventKind::kReply});
  s.at(100s).expect_silence();
}

TEST(CmActive, ARepeatedReplyGetsTheRtuAgain) {
  CmScript s;
  s.at(0ms).reach_established_active();
  s.at(1s).wire_delivers(s.peer_rep()).expect_sent({s.our_rtu()});
  s.at(2s).wire_delivers(s.peer_rep()).expect_sent({s.our_rtu()});
}

TEST(CmActive, AReplyRepeatedBeforeTheConsumerAnsweredIsDropped) {
  CmScript s;
  s.at(0ms).app_connects().expect_sent({s.our_req()});
  s.wire_delivers(s.peer_rep()).expect_told({EventKind::kReply});
  s.wire_delivers(s.peer_rep()).expect_silence().expect_counter(Counter::kMadsDropped, 1);
}

TEST(CmActive, AReplyOfAnotherPeerForAnEstablishedConnectionIsDropped) {
  CmScript s;
  s.at(0ms).reach_established_active();
  wire::CmRep rep = s.peer_rep();
  rep.local_comm_id ^= 1;
  s.wire_delivers(rep).expect_silence();
}

// ---- MRA ----

TEST(CmActive, AnMraExtendsTheTimeout) {
  CmScript s;
  s.at(0ms).app_connects().expect_sent({s.our_req()});
  s.at(1s).wire_delivers(s.peer_mra(CmMraed::kReq, 22)).expect_told({EventKind::kRemoteMra});
  const engine::Duration longer{(int64_t{4096} << 22) + 2 * (int64_t{4096} << 18)};
  s.at(1s + longer - 1ns).expect_silence();
  s.at(1s + longer).expect_sent({s.our_req()});
  s.at(1s + longer + kCmTimeout).expect_sent({s.our_req()});
  s.wire_delivers(s.peer_rep()).expect_told({EventKind::kReply});
}

TEST(CmActive, AnMraForAnotherMessageIsDropped) {
  CmScript s;
  s.at(0ms).app_connects().expect_sent({s.our_req()});
  s.wire_delivers(s.peer_mra(CmMraed::kRep, 22)).wire_delivers(s.peer_mra(CmMraed::kLap, 22));
  s.expect_silence().expect_counter(Counter::kMadsDropped, 2);
  s.at(kCmTimeout).expect_sent({s.our_req()});
}

TEST(CmActive, TheConsumerMayDelayItsAnswerAndARepeatedReplyGetsTheMraAgain) {
  CmScript s;
  s.at(0ms).app_connects().expect_sent({s.our_req()});
  s.wire_delivers(s.peer_rep()).expect_told({EventKind::kReply});
  s.app_delays(24).expect_sent({s.our_mra(CmMraed::kRep, 24)});
  s.at(7s).wire_delivers(s.peer_rep()).expect_sent({s.our_mra(CmMraed::kRep, 24)});
  s.at(8s).app_is_ready().expect_sent({s.our_rtu()});
  s.app([&](auto& manager) { EXPECT_EQ(manager.delay(s.id(), 20), EINVAL); }).expect_silence();
}

// ---- REJ ----

TEST(CmActive, ARejEndsTheRequest) {
  for (const auto reason : {CmRejectReason::kConsumer, CmRejectReason::kInvalidServiceId,
                            CmRejectReason::kStaleConnection, CmRejectReason::kNoResources}) {
    CmScript s;
    s.at(0ms).app_connects().expect_sent({s.our_req()});
    wire::CmRej rej = s.peer_rej(reason, CmRejected::kReq);
    rej.local_comm_id = 0;  // as in the REJ of a peer that keeps no connection
    rej.private_data.fill(0x33);
    s.wire_delivers(rej).expect_told({EventKind::kRejected});
    EXPECT_EQ(std::get<wire::CmRej>(*s.last_event().message), rej);
    s.wire_delivers(rej).expect_silence();
    s.at(1000s).expect_silence();
  }
}

TEST(CmActive, ARejAfterTheReplyEndsIt) {
  CmScript s;
  s.at(0ms).app_connects().expect_sent({s.our_req()});
  s.wire_delivers(s.peer_rep()).expect_told({EventKind::kReply});
  wire::CmRej stranger = s.peer_rej(CmRejectReason::kConsumer, CmRejected::kNoMessage);
  stranger.local_comm_id ^= 1;
  s.wire_delivers(stranger).expect_silence();
  s.wire_delivers(s.peer_rej(CmRejectReason::kTimeout, CmRejected::kNoMessage))
      .expect_told({EventKind::kRejected});
  s.app([&](auto& manager) { EXPECT_EQ(manager.ready(s.id()), EINVAL); });
}

TEST(CmActive, ARejOfTheRtuEndsTheConnectionAfterItsTimewait) {
  CmScript s;
  s.at(0ms).reach_established_active();
  s.wire_delivers(s.peer_rej(CmRejectReason::kInvalidCommId, CmRejected::kNoMessage))
      .expect_told({EventKind::kRejected});
  s.at(kCmTimewait).expect_told({EventKind::kTimewaitExit});
}

TEST(CmActive, TheConsumerMayRejectTheReply) {
  CmScript s;
  s.at(0ms).app_connects().expect_sent({s.our_req()});
  s.wire_delivers(s.peer_rep()).expect_told({EventKind::kReply});
  const auto rej = s.our_rej(CmRejectReason::kConsumer, CmRejected::kRep);
  s.app_rejects().expect_sent({rej});
  s.wire_delivers(s.peer_rep()).expect_sent({rej});  // it was lost
  s.at(1000s).expect_silence();
}

TEST(CmActive, ARejectionHasInformationAndPrivateData) {
  CmScript s;
  s.at(0ms).app_connects().expect_sent({s.our_req()});
  s.wire_delivers(s.peer_rep()).expect_told({EventKind::kReply});
  const std::vector<uint8_t> info = pattern(73, 1), data = pattern(149, 2);
  const auto reject = [&](size_t info_size, size_t data_size) {
    return engine::cm::Reject{.reason = 0x1234,
                              .info = std::span(info).first(info_size),
                              .private_data = std::span(data).first(data_size)};
  };
  s.app([&](auto& manager) {
     EXPECT_EQ(manager.reject(s.id(), reject(73, 148)), EINVAL);
     EXPECT_EQ(manager.reject(s.id(), reject(72, 149)), EINVAL);
   }).expect_silence();
  s.app([&](auto& manager) { EXPECT_EQ(manager.reject(s.id(), reject(72, 148)), 0); });
  wire::CmRej rej = s.our_rej(CmRejectReason::kConsumer, CmRejected::kRep);
  rej.reason = 0x1234;
  rej.info_length = 72;
  std::copy_n(info.begin(), 72, rej.info.begin());
  std::copy_n(data.begin(), 148, rej.private_data.begin());
  s.expect_sent({rej});
}

// ---- Invalid replies ----

TEST(CmActive, AReplyForNoRequestOfOursIsRejected) {
  CmScript s;
  s.at(0ms).wire_delivers(s.peer_rep());
  s.expect_sent({s.our_rej(CmRejectReason::kInvalidCommId, CmRejected::kRep)});
}

// 12.9.8.3.1: the REP names a QP of the peer with which we already have another connection.
TEST(CmActive, AReplyFromAQpThatIsConnectedIsStaleAndEndsTheOldConnection) {
  CmScript s;
  s.at(0ms).reach_established_active();
  const auto old_dreq = s.our_dreq();
  s.app_connects().expect_sent({s.our_req()});
  wire::CmRep rep = s.peer_rep();
  rep.local_comm_id = 0x99;
  wire::CmRej rej = s.our_rej(CmRejectReason::kStaleConnection, CmRejected::kRep);
  rej.remote_comm_id = 0x99;
  s.wire_delivers(rep).expect_sent({rej, old_dreq}).expect_told({EventKind::kRequestError});
  wire::CmDrep drep = s.peer_drep();
  drep.remote_comm_id = old_dreq.local_comm_id;
  s.wire_delivers(drep).expect_told({EventKind::kDisconnectReply});
}

TEST(CmActive, AReplyFromAQpWhoseConnectionIsInTimewaitIsTaken) {
  CmScript s;
  s.at(0ms).reach_established_active();
  s.app_disconnects().expect_sent({s.our_dreq()});
  s.wire_delivers(s.peer_drep()).expect_told({EventKind::kDisconnectReply});
  s.app_connects().expect_sent({s.our_req()});
  wire::CmRep rep = s.peer_rep();
  rep.local_comm_id = 0x99;
  s.wire_delivers(rep).expect_told({EventKind::kReply});
}

TEST(CmActive, AReplyWithAnIdThatIsTakenIsRejected) {
  CmScript s;
  s.at(0ms).reach_established_active();
  s.app_connects().expect_sent({s.our_req()});
  wire::CmRep rep = s.peer_rep();
  rep.local_qpn ^= 1;
  s.wire_delivers(rep)
      .expect_sent({s.our_rej(CmRejectReason::kDuplicateLocalCommId, CmRejected::kRep)})
      .expect_told({EventKind::kRequestError});
}

// ---- Destroyed ----

TEST(CmActive, ARequestThatIsDestroyedSendsATimeout) {
  CmScript s;
  s.at(0ms).app_connects().expect_sent({s.our_req()});
  s.app_destroys().expect_sent({s.our_timeout(0)});
  s.wire_delivers(s.peer_rep()).expect_sent({s.our_timeout(0)});
  s.wire_delivers(s.peer_rej(CmRejectReason::kConsumer, CmRejected::kReq)).expect_silence();
  s.at(1000s).expect_silence();
}

TEST(CmActive, AReplyThatIsDestroyedUnansweredIsRejected) {
  CmScript s;
  s.at(0ms).app_connects().expect_sent({s.our_req()});
  s.wire_delivers(s.peer_rep()).expect_told({EventKind::kReply});
  s.app_destroys().expect_sent({s.our_rej(CmRejectReason::kConsumer, CmRejected::kRep)});
  s.at(1000s).expect_silence();
}

// ---- Values from the seed ----

TEST(CmActive, IdsAndStartingPsnsComeFromTheSeed) {
  const auto numbers = [](uint64_t seed) {
    CmScript s(seed);
    engine::cm::Connect connect = s.request();
    connect.starting_psn.reset();
    s.at(0ms).app_connects(connect);
    const auto mad = wire::parse_cm_mad(s.last_packet().payload);
    const auto& req = std::get<wire::CmReq>(mad->message);
    EXPECT_EQ(req.local_comm_id, s.id().value);
    wire::CmReq expected = s.our_req();
    expected.starting_psn = req.starting_psn;
    s.expect_sent({expected});
    return std::pair(req.local_comm_id, req.starting_psn.value());
  };
  EXPECT_EQ(numbers(1), numbers(1));
  EXPECT_NE(numbers(1).first, numbers(2).first);
  EXPECT_NE(numbers(1).second, numbers(2).second);
}

TEST(CmActive, AnswersHaveTheTransactionIdOfTheirRequest) {
  CmScript s;
  s.at(0ms).app_connects();
  const uint64_t ours = uint64_t{1} << 32 | s.id().value;
  s.expect_sent_mads({{.transaction_id = ours, .message = s.our_req()}});
  s.wire_delivers({.transaction_id = ours, .message = s.peer_rep()})
      .expect_told({EventKind::kReply});
  s.app_is_ready().expect_sent_mads({{.transaction_id = ours, .message = s.our_rtu()}});
}

// ---- Peer to peer ----

engine::cm::Connect as_peer(const CmScript& s) {
  engine::cm::Connect connect = s.request();
  connect.peer_to_peer = true;
  return connect;
}

// 12.9: if two sides request a connection from each other, the side with the greater CA GUID stays
// active.
TEST(CmPeerToPeer, TheOneWithTheGreaterGuidStaysActive) {
  CmScript s;
  s.at(0ms).app_connects(as_peer(s)).expect_sent({s.our_req()});
  wire::CmReq req = s.peer_req();
  req.local_ca_guid = 1;
  s.wire_delivers(req).expect_silence();
  s.wire_delivers(s.peer_rep()).expect_told({EventKind::kReply});
  s.app_is_ready().expect_sent({s.our_rtu()});
}

TEST(CmPeerToPeer, TheOtherBecomesPassive) {
  CmScript s;
  s.at(0ms).app_connects(as_peer(s)).expect_sent({s.our_req()});
  const auto id = s.id();
  s.wire_delivers(s.peer_req()).expect_told({EventKind::kRequest});
  EXPECT_EQ(s.id(), id);
  EXPECT_EQ(s.last_event().context, CmScript::kContext);
  EXPECT_FALSE(s.last_event().listener);
  s.at(100s).expect_silence();  // our own request is no longer repeated
  s.app_accepts().expect_sent({s.our_rep()});
  s.wire_delivers(s.peer_rtu()).expect_told({EventKind::kEstablished});
}

TEST(CmPeerToPeer, WithEqualGuidsTheQpnDecides) {
  for (const uint32_t qpn : {CmScript::kOurQpn - 1, CmScript::kOurQpn + 1}) {
    CmScript s;
    s.at(0ms).app_connects(as_peer(s)).expect_sent({s.our_req()});
    wire::CmReq req = s.peer_req();
    req.local_ca_guid = s.our_req().local_ca_guid;
    req.local_qpn = qpn;
    s.wire_delivers(req);
    if (qpn < CmScript::kOurQpn) {
      s.expect_silence();
    } else {
      s.expect_told({EventKind::kRequest});
    }
  }
}

TEST(CmPeerToPeer, ARequestForAnotherServiceOrFromAnotherAddressIsNoCounterpart) {
  CmScript s;
  s.at(0ms).app_connects(as_peer(s)).expect_sent({s.our_req()});
  wire::CmRej rej = s.our_rej(CmRejectReason::kInvalidServiceId, CmRejected::kReq);
  rej.local_comm_id = 0;
  wire::CmReq req = s.peer_req();
  req.service_id ^= 1;
  s.wire_delivers(req).expect_sent({rej});
  req = s.peer_req();
  req.primary.local_gid = wire::IpAddress::from_v4(10, 0, 0, 3);
  s.wire_delivers(req).expect_sent({rej});
}

TEST(CmPeerToPeer, AClientsRequestDoesNotBecomePassive) {
  CmScript s;
  s.at(0ms).app_connects().expect_sent({s.our_req()});
  wire::CmRej rej = s.our_rej(CmRejectReason::kInvalidServiceId, CmRejected::kReq);
  rej.local_comm_id = 0;
  s.wire_delivers(s.peer_req()).expect_sent({rej});
}

}  // namespace
}  // namespace rocemu::test
