// Tests service ID resolution (IBTA vol 1, 12.11): how a client asks which datagram QP serves a
// service ID.
#include <gtest/gtest.h>

#include "tests/support/cm_script.h"

namespace rocemu::test {
namespace {

using engine::Counter;
using engine::cm::Resolve;
using engine::cm::Resolved;

constexpr uint32_t kRequestId = 0x4711;
constexpr uint32_t kQkey = 0x01234567;

Resolve question(const CmScript& s) {
  Resolve resolve;
  resolve.route = s.request().route;
  resolve.service_id = CmScript::kService;
  resolve.context = CmScript::kContext;
  return resolve;
}

engine::cm::ConnectionId ask(CmScript& s, const Resolve& resolve) {
  engine::cm::ConnectionId id;
  s.app([&](auto& manager) {
    const auto result = manager.resolve(resolve);
    ASSERT_TRUE(result);
    id = *result;
  });
  return id;
}

wire::CmSidrReq our_req(engine::cm::ConnectionId id) {
  return {.request_id = id.value, .pkey = 0xffff, .service_id = CmScript::kService};
}

wire::CmSidrRep peer_rep(engine::cm::ConnectionId id) {
  return {.request_id = id.value,
          .qpn = CmScript::kPeerQpn,
          .service_id = CmScript::kService,
          .qkey = kQkey};
}

wire::CmSidrReq peer_req() {
  return {.request_id = kRequestId, .pkey = 0xffff, .service_id = CmScript::kService};
}

wire::CmSidrRep our_rep(wire::SidrStatus status) {
  wire::CmSidrRep rep{.request_id = kRequestId,
                      .status = static_cast<uint8_t>(status),
                      .service_id = CmScript::kService};
  if (status == wire::SidrStatus::kValid) {
    rep.qpn = CmScript::kOurQpn;
    rep.qkey = kQkey;
  }
  return rep;
}

Resolved answer() {
  Resolved resolved;
  resolved.qpn = engine::QpNumber{CmScript::kOurQpn};
  resolved.qkey = kQkey;
  return resolved;
}

// ---- Asking ----

TEST(CmResolution, IsARequestAndAReply) {
  CmScript s;
  const auto id = ask(s, question(s));
  s.expect_sent({our_req(id)});
  s.at(1s).wire_delivers(peer_rep(id)).expect_told({EventKind::kResolveReply});
  EXPECT_EQ(s.last_event().context, CmScript::kContext);
  EXPECT_EQ(s.last_event().connection, id);
  EXPECT_EQ(std::get<wire::CmSidrRep>(*s.last_event().message), peer_rep(id));
  EXPECT_EQ(s.manager().size(), 0u);
  s.wire_delivers(peer_rep(id)).expect_silence().expect_counter(Counter::kMadsDropped, 1);
  s.at(1000s).expect_silence();
}

TEST(CmResolution, ARequestIsRepeatedUntilItsRetriesAreUsedUp) {
  CmScript s;
  Resolve resolve = question(s);
  resolve.max_retries = 2;
  const auto id = ask(s, resolve);
  s.expect_sent({our_req(id)});
  s.at(kCmTimeout).expect_sent({our_req(id)});
  s.at(2 * kCmTimeout).expect_sent({our_req(id)});
  s.at(3 * kCmTimeout).expect_told({EventKind::kResolveError});
  EXPECT_EQ(s.manager().size(), 0u);
}

TEST(CmResolution, ThatIsDestroyedEndsSilently) {
  CmScript s;
  const auto id = ask(s, question(s));
  s.expect_sent({our_req(id)});
  s.app([&](auto& manager) { manager.destroy(id); });
  s.wire_delivers(peer_rep(id)).expect_silence();
  s.at(1000s).expect_silence();
}

TEST(CmResolution, WhatDoesNotFitIsRefused) {
  CmScript s;
  const std::vector<uint8_t> data(217);
  Resolve resolve = question(s);
  resolve.private_data = data;
  s.app([&](auto& manager) {
    EXPECT_EQ(manager.resolve(resolve).error(), EINVAL);
    resolve.private_data = std::span(data).first(216);
    resolve.max_retries = 16;
    EXPECT_EQ(manager.resolve(resolve).error(), EINVAL);
    resolve.max_retries = 15;
    resolve.response_timeout = 32;
    EXPECT_EQ(manager.resolve(resolve).error(), EINVAL);
  });
  s.expect_silence();
}

// ---- Answering ----

TEST(CmResolution, OfAServiceOfOursIsAnsweredByTheConsumer) {
  CmScript s;
  s.at(0ms).app_listens();
  wire::CmSidrReq req = peer_req();
  req.private_data.fill(0x21);
  s.wire_delivers(req).expect_told({EventKind::kResolveRequest});
  EXPECT_EQ(s.last_event().context, CmScript::kListenerContext);
  EXPECT_TRUE(s.last_event().listener);
  EXPECT_EQ(s.last_event().route.remote, s.peer_ip());
  EXPECT_EQ(std::get<wire::CmSidrReq>(*s.last_event().message), req);
  s.wire_delivers(req).expect_silence();  // repeated: the program already has this request
  s.at(10s).app([&](auto& manager) { EXPECT_EQ(manager.answer_resolve(s.id(), answer()), 0); });
  s.expect_sent_mads({{.transaction_id = CmScript::kPeerTransaction,
                       .message = our_rep(wire::SidrStatus::kValid)}});
  EXPECT_FALSE(s.manager().exists(s.id()));
  // The answer was lost, so the peer repeats its request.
  s.wire_delivers(req).expect_sent({our_rep(wire::SidrStatus::kValid)});
  s.app([&](auto& manager) { EXPECT_EQ(manager.answer_resolve(s.id(), answer()), EINVAL); });
  s.at(1000s).expect_silence();
  EXPECT_EQ(s.manager().size(), 0u);
}

TEST(CmResolution, TheAnswerHasInformationAndPrivateData) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(peer_req()).expect_told({EventKind::kResolveRequest});
  const std::vector<uint8_t> info = pattern(73, 1), data = pattern(137, 2);
  Resolved resolved = answer();
  resolved.info = info;
  s.app([&](auto& manager) { EXPECT_EQ(manager.answer_resolve(s.id(), resolved), EINVAL); });
  resolved.info = std::span(info).first(72);
  resolved.private_data = data;
  s.app([&](auto& manager) { EXPECT_EQ(manager.answer_resolve(s.id(), resolved), EINVAL); });
  resolved.private_data = std::span(data).first(136);
  s.app([&](auto& manager) { EXPECT_EQ(manager.answer_resolve(s.id(), resolved), 0); });
  wire::CmSidrRep rep = our_rep(wire::SidrStatus::kValid);
  rep.info_length = 72;
  std::copy_n(info.begin(), 72, rep.info.begin());
  std::copy_n(data.begin(), 136, rep.private_data.begin());
  s.expect_sent({rep});
}

TEST(CmResolution, OfAServiceThatDoesNotExistHasThatStatus) {
  CmScript s;
  s.at(0ms).wire_delivers(peer_req());
  s.expect_sent({our_rep(wire::SidrStatus::kServiceIdNotSupported)});
  EXPECT_EQ(s.manager().size(), 0u);
}

TEST(CmResolution, ThatTheConsumerDestroysIsRejectedByTheProvider) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(peer_req()).expect_told({EventKind::kResolveRequest});
  s.app_destroys().expect_sent({our_rep(wire::SidrStatus::kRejectedByProvider)});
}

TEST(CmResolution, TheSameRequestIdOfAnotherAddressIsAnotherRequest) {
  CmScript s;
  s.at(0ms).app_listens().wire_delivers(peer_req()).expect_told({EventKind::kResolveRequest});
  std::array<uint8_t, wire::kMadSize> payload;
  wire::emit({.transaction_id = 1, .message = peer_req()}, payload);
  wire::Packet packet = s.packet_with(payload);
  packet.src_ip = wire::IpAddress::from_v4(10, 0, 0, 3);
  s.wire_delivers_packet(packet).expect_told({EventKind::kResolveRequest});
}

TEST(CmResolution, IsNoConnection) {
  CmScript s;
  const auto id = ask(s, question(s));
  s.expect_sent({our_req(id)});
  s.app([&](auto& manager) {
    EXPECT_EQ(manager.ready(id), EINVAL);
    EXPECT_EQ(manager.reject(id), EINVAL);
    EXPECT_EQ(manager.disconnect(id), EINVAL);
    EXPECT_FALSE(manager.qp_attributes(id, abi::QpState::kInit));
  });
  s.wire_delivers(wire::CmDreq{.local_comm_id = 0, .remote_comm_id = id.value});
  s.wire_delivers(wire::CmRej{.local_comm_id = 0, .remote_comm_id = id.value});
  s.expect_silence();
}

}  // namespace
}  // namespace rocemu::test
