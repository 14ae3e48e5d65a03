#include "tests/support/cm_script.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "wire/cm/cm_print.h"
#include "wire/print.h"

namespace rocemu::engine::cm {

void PrintTo(EventKind kind, std::ostream* out) {
  constexpr const char* kNames[] = {
      "kRequest",         "kEstablished",     "kReplyError",   "kReply",
      "kRequestError",    "kRemoteMra",       "kRejected",     "kDisconnectRequest",
      "kDisconnectReply", "kDisconnectError", "kTimewaitExit", "kAlternatePathRequest",
      "kResolveRequest",  "kResolveReply",    "kResolveError"};
  *out << kNames[static_cast<size_t>(kind)];
}

}  // namespace rocemu::engine::cm

namespace rocemu::test {

using engine::Instant;
using namespace engine::cm;
using wire::CmMad;
using wire::CmMessage;

namespace {

engine::FabricConfig config_of(uint64_t seed) {
  engine::FabricConfig config = engine::default_fabric(1);
  config.seed = seed;
  return config;
}

std::string lines(const std::vector<CmMad>& mads, Instant at) {
  std::string text;
  for (const CmMad& mad : mads) text += "\n  " + wire::to_string(mad);
  return (text.empty() ? "\n  nothing" : text) + "\n  at " +
         std::to_string(at.time_since_epoch().count()) + " ns";
}

}  // namespace

CmScript::CmScript(uint64_t seed, const char* file, int line)
    : file_(file),
      line_(line),
      device_ip_(wire::IpAddress::from_v4(127, 0, 0, 1)),
      peer_ip_(wire::IpAddress::from_v4(10, 0, 0, 2)),
      fabric_(config_of(seed), memory_) {}

CmScript::~CmScript() {
  check_silent("at the end", line_);
}

void CmScript::check_silent(const char* when, int line) {
  std::vector<CmMad> mads;
  for (const Sent& sent : sent_) mads.push_back(sent.mad);
  if (!mads.empty()) {
    ADD_FAILURE_AT(file_, line) << when << ", messages that nobody expected:" << lines(mads, now_);
  }
  if (!told_.empty()) {
    ADD_FAILURE_AT(file_, line) << when << ", events that nobody expected, the first: "
                                << testing::PrintToString(told_.front().kind);
  }
  sent_.clear();
  told_.clear();
}

CmScript& CmScript::step(const std::function<void()>& input, int line) {
  line_ = line;
  fabric_.begin_step(now_, outputs_);
  fabric_.begin_expiry();
  if (input) input();
  fabric_.run();
  collect(line);
  return *this;
}

void CmScript::collect(int line) {
  for (const engine::Output& output : outputs_.list) {
    const auto* transmit = std::get_if<engine::TransmitFrame>(&output);
    ASSERT_NE(transmit, nullptr);
    const auto bytes = transmit->frame.bytes();
    last_frame_.assign(bytes.begin(), bytes.end());
    const auto packet = wire::parse_frame(last_frame_);
    ASSERT_TRUE(packet) << name(packet.error());
    EXPECT_TRUE(wire::check_icrc(last_frame_));
    last_packet_ = *packet;

    // These checks apply to every frame that QP 1 sends.
    const testing::ScopedTrace trace(file_, line, wire::to_string(*packet));
    EXPECT_EQ(packet->src_ip, device_ip_);
    EXPECT_EQ(packet->bth.opcode, wire::Opcode::kUdSendOnly);
    EXPECT_EQ(packet->bth.dest_qpn, wire::kGsiQpn);
    EXPECT_EQ(packet->bth.pkey, wire::kDefaultPkey);
    EXPECT_TRUE(packet->bth.ack_req);
    EXPECT_EQ(packet->bth.psn.value(), next_psn_++);
    EXPECT_EQ(packet->deth, (wire::Deth{.qkey = 0x80010000, .src_qpn = 1}));
    EXPECT_EQ(packet->payload.size(), 256u);
    const auto mad = wire::parse_cm_mad(packet->payload);
    if (mad) sent_.push_back({*mad, now_});
  }
  outputs_.list.clear();
  while (const auto event = fabric_.connections.next_event()) {
    told_.push_back(*event);
    last_event_ = *event;
    if (event->kind == EventKind::kRequest || event->kind == EventKind::kResolveRequest) {
      id_ = event->connection;
    }
  }
}

CmScript& CmScript::at(engine::Duration time, int line) {
  check_silent("before the time moved on", line_);
  line_ = line;
  const Instant target{time};
  for (auto next = fabric_.next_deadline(); next && *next <= target;
       next = fabric_.next_deadline()) {
    now_ = std::max(now_, *next);
    step({}, line);
    if (now_ < target) check_silent("on the way to this time", line);
  }
  now_ = target;
  return *this;
}

// ---- The application ----

CmScript& CmScript::app(const std::function<void(ConnectionManager&)>& call, int line) {
  return step([&] { call(fabric_.connections); }, line);
}

CmScript& CmScript::app_listens(int line) {
  return app(
      [&](ConnectionManager& manager) {
        EXPECT_TRUE(manager.listen({.service_id = kService, .context = kListenerContext}));
      },
      line);
}

CmScript& CmScript::app_connects(const Connect& connect, int line) {
  return app(
      [&](ConnectionManager& manager) {
        const auto id = manager.connect(connect);
        ASSERT_TRUE(id);
        id_ = *id;
      },
      line);
}

CmScript& CmScript::app_accepts(int line) {
  return app(
      [&](ConnectionManager& manager) {
        EXPECT_EQ(manager.set_context(id_, kContext), 0);
        EXPECT_EQ(manager.accept(id_, acceptance()), 0);
      },
      line);
}

CmScript& CmScript::app_is_ready(int line) {
  return app([&](ConnectionManager& manager) { EXPECT_EQ(manager.ready(id_), 0); }, line);
}

CmScript& CmScript::app_rejects(int line) {
  return app([&](ConnectionManager& manager) { EXPECT_EQ(manager.reject(id_), 0); }, line);
}

CmScript& CmScript::app_delays(uint8_t code, int line) {
  return app([&](ConnectionManager& manager) { EXPECT_EQ(manager.delay(id_, code), 0); }, line);
}

CmScript& CmScript::app_disconnects(int line) {
  return app([&](ConnectionManager& manager) { EXPECT_EQ(manager.disconnect(id_), 0); }, line);
}

CmScript& CmScript::app_answers_disconnect(int line) {
  return app([&](ConnectionManager& manager) { EXPECT_EQ(manager.answer_disconnect(id_), 0); },
             line);
}

CmScript& CmScript::app_destroys(int line) {
  return app(
      [&](ConnectionManager& manager) {
        manager.destroy(id_);
        EXPECT_FALSE(manager.exists(id_));
      },
      line);
}

// ---- The wire ----

wire::Packet CmScript::packet_with(std::span<const uint8_t> payload) const {
  wire::Packet packet;
  packet.src_ip = peer_ip_;
  packet.dst_ip = device_ip_;
  packet.bth.opcode = wire::Opcode::kUdSendOnly;
  packet.bth.dest_qpn = wire::kGsiQpn;
  packet.deth = {.qkey = wire::kGsiQkey, .src_qpn = wire::kGsiQpn};
  packet.payload = payload;
  return packet;
}

CmScript& CmScript::wire_delivers_packet(const wire::Packet& packet, int line) {
  std::vector<uint8_t> frame(wire::frame_size(packet, packet.payload.size()));
  wire::emit_frame(packet, frame);
  const engine::ReceivedFrame received{engine::DeviceIndex{0}, frame};
  return step([&] { fabric_.receive({{&received, 1}}); }, line);
}

CmScript& CmScript::wire_delivers(const CmMad& mad, int line) {
  std::array<uint8_t, wire::kMadSize> payload;
  wire::emit(mad, payload);
  return wire_delivers_packet(packet_with(payload), line);
}

CmScript& CmScript::wire_delivers(const CmMessage& message, int line) {
  return wire_delivers(CmMad{.transaction_id = kPeerTransaction, .message = message}, line);
}

// ---- Expectations ----

CmScript& CmScript::expect_sent(std::initializer_list<CmMessage> messages, int line) {
  std::vector<CmMad> wanted;
  std::vector<CmMad> got;
  for (const CmMessage& message : messages)
    wanted.push_back({.transaction_id = 0, .message = message});
  for (const Sent& sent : sent_) got.push_back({.transaction_id = 0, .message = sent.mad.message});
  if (wanted != got) {
    ADD_FAILURE_AT(file_, line) << "expected:" << lines(wanted, now_)
                                << "\nsent:" << lines(got, now_);
  }
  sent_.clear();
  return *this;
}

CmScript& CmScript::expect_sent_mads(const std::vector<CmMad>& mads, int line) {
  std::vector<CmMad> got;
  for (const Sent& sent : sent_) got.push_back(sent.mad);
  if (mads != got) {
    ADD_FAILURE_AT(file_, line) << "expected:" << lines(mads, now_)
                                << "\nsent:" << lines(got, now_);
  }
  sent_.clear();
  return *this;
}

CmScript& CmScript::expect_told(std::initializer_list<EventKind> kinds, int line) {
  std::vector<EventKind> got;
  for (const Event& event : told_) got.push_back(event.kind);
  if (got != std::vector<EventKind>(kinds)) {
    ADD_FAILURE_AT(file_, line) << "expected events "
                                << testing::PrintToString(std::vector<EventKind>(kinds)) << ", got "
                                << testing::PrintToString(got);
  }
  told_.clear();
  return *this;
}

CmScript& CmScript::expect_counter(engine::Counter which, uint64_t value, int line) {
  const uint64_t got = fabric_.objects.devices[engine::DeviceIndex{0}].counters.get(which);
  if (got != value) {
    ADD_FAILURE_AT(file_, line) << name(which) << " is " << got << ", not " << value;
  }
  return *this;
}

// ---- Messages ----

Connect CmScript::request() const {
  Connect connect;
  connect.route = {.device = engine::DeviceIndex{0}, .gid_index = 0, .remote = peer_ip_};
  connect.service_id = kService;
  connect.context = kContext;
  connect.qpn = engine::QpNumber{kOurQpn};
  connect.starting_psn = kOurPsn;
  connect.flow_control = false;
  connect.responder_resources = 4;
  connect.initiator_depth = 3;
  connect.retry_count = 6;
  connect.rnr_retry_count = 5;
  return connect;
}

Accept CmScript::acceptance() const {
  Accept accept;
  accept.qpn = engine::QpNumber{kOurQpn};
  accept.starting_psn = kOurPsn;
  accept.flow_control = false;
  accept.responder_resources = 2;
  accept.initiator_depth = 1;
  accept.rnr_retry_count = 4;
  return accept;
}

wire::CmReq CmScript::our_req() const {
  return {
      .local_comm_id = id_.value,
      .service_id = kService,
      .local_ca_guid = engine::node_guid(fabric_.objects.devices[engine::DeviceIndex{0}].config),
      .local_qpn = kOurQpn,
      .responder_resources = 4,
      .initiator_depth = 3,
      .remote_cm_response_timeout = 20,
      .starting_psn = wire::Psn(kOurPsn),
      .local_cm_response_timeout = 20,
      .retry_count = 6,
      .pkey = 0xffff,
      .path_mtu = 3,
      .rnr_retry_count = 5,
      .max_cm_retries = 15,
      .primary = {.local_lid = 0xffff,
                  .remote_lid = 0xffff,
                  .local_gid = device_ip_,
                  .remote_gid = peer_ip_,
                  .hop_limit = 64,
                  .local_ack_timeout = 19}};
}

wire::CmReq CmScript::peer_req() const {
  wire::CmReq req = our_req();
  req.local_comm_id = kPeerId;
  req.local_ca_guid = kPeerGuid;
  req.local_qpn = kPeerQpn;
  req.starting_psn = wire::Psn(kPeerPsn);
  std::swap(req.primary.local_gid, req.primary.remote_gid);
  return req;
}

wire::CmRep CmScript::our_rep() const {
  return {
      .local_comm_id = id_.value,
      .remote_comm_id = kPeerId,
      .local_qpn = kOurQpn,
      .starting_psn = wire::Psn(kOurPsn),
      .responder_resources = 2,
      .initiator_depth = 1,
      .target_ack_delay = 15,
      .rnr_retry_count = 4,
      .local_ca_guid = engine::node_guid(fabric_.objects.devices[engine::DeviceIndex{0}].config)};
}

wire::CmRep CmScript::peer_rep() const {
  return {.local_comm_id = kPeerId,
          .remote_comm_id = id_.value,
          .local_qpn = kPeerQpn,
          .starting_psn = wire::Psn(kPeerPsn),
          .responder_resources = 2,
          .initiator_depth = 1,
          .target_ack_delay = 15,
          .rnr_retry_count = 4,
          .local_ca_guid = kPeerGuid};
}

wire::CmRtu CmScript::our_rtu() const {
  return {.local_comm_id = id_.value, .remote_comm_id = kPeerId};
}
wire::CmRtu CmScript::peer_rtu() const {
  return {.local_comm_id = kPeerId, .remote_comm_id = id_.value};
}
wire::CmMra CmScript::our_mra(wire::CmMraed message, uint8_t code) const {
  return {.local_comm_id = id_.value,
          .remote_comm_id = kPeerId,
          .message = message,
          .service_timeout = code};
}
wire::CmMra CmScript::peer_mra(wire::CmMraed message, uint8_t code) const {
  return {.local_comm_id = kPeerId,
          .remote_comm_id = id_.value,
          .message = message,
          .service_timeout = code};
}
wire::CmRej CmScript::our_rej(wire::CmRejectReason reason, wire::CmRejected message) const {
  return {.local_comm_id = id_.value,
          .remote_comm_id = kPeerId,
          .message = message,
          .reason = static_cast<uint16_t>(reason)};
}
wire::CmRej CmScript::our_timeout(uint32_t remote_id) const {
  wire::CmRej rej = our_rej(wire::CmRejectReason::kTimeout, wire::CmRejected::kNoMessage);
  rej.remote_comm_id = remote_id;
  rej.info_length = 8;
  const uint64_t guid = engine::node_guid(fabric_.objects.devices[engine::DeviceIndex{0}].config);
  for (unsigned i = 0; i < 8; ++i) rej.info[i] = static_cast<uint8_t>(guid >> (56 - 8 * i));
  return rej;
}
wire::CmRej CmScript::peer_rej(wire::CmRejectReason reason, wire::CmRejected message) const {
  return {.local_comm_id = kPeerId,
          .remote_comm_id = id_.value,
          .message = message,
          .reason = static_cast<uint16_t>(reason)};
}
wire::CmDreq CmScript::our_dreq() const {
  return {.local_comm_id = id_.value, .remote_comm_id = kPeerId, .remote_qpn = kPeerQpn};
}
wire::CmDreq CmScript::peer_dreq() const {
  return {.local_comm_id = kPeerId, .remote_comm_id = id_.value, .remote_qpn = kOurQpn};
}
wire::CmDrep CmScript::our_drep() const {
  return {.local_comm_id = id_.value, .remote_comm_id = kPeerId};
}
wire::CmDrep CmScript::peer_drep() const {
  return {.local_comm_id = kPeerId, .remote_comm_id = id_.value};
}

// ---- States ----

CmScript& CmScript::reach_established_active(int line) {
  app_connects(line);
  expect_sent({our_req()}, line).expect_told({}, line);
  wire_delivers(peer_rep(), line).expect_told({EventKind::kReply}, line);
  return app_is_ready(line).expect_sent({our_rtu()}, line);
}

CmScript& CmScript::reach_established_passive(int line) {
  app_listens(line);
  wire_delivers(peer_req(), line).expect_told({EventKind::kRequest}, line);
  app_accepts(line).expect_sent({our_rep()}, line);
  return wire_delivers(peer_rtu(), line).expect_told({EventKind::kEstablished}, line);
}

}  // namespace rocemu::test
