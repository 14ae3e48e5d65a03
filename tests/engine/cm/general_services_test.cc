// Tests QP 1: which packets it accepts, how it handles unknown MADs, and that other hosts can make
// it neither grow nor fail.
#include <gtest/gtest.h>

#include <functional>

#include "emulator/engine/base/random.h"
#include "tests/support/cm_script.h"

namespace rocemu::test {
namespace {

using engine::Counter;
using wire::CmRejected;
using wire::CmRejectReason;

using Mad = std::array<uint8_t, wire::kMadSize>;

Mad rtu_for_nobody(const CmScript& s) {
  Mad mad;
  wire::emit({.transaction_id = 1, .message = s.peer_rtu()}, mad);
  return mad;
}

TEST(GeneralServices, DropsMadsThatAreSentWrongly) {
  const auto dropped = [](Counter reason, auto change, int line = __builtin_LINE()) {
    CmScript s;
    const Mad mad = rtu_for_nobody(s);
    std::vector<uint8_t> payload(mad.begin(), mad.end());
    wire::Packet packet = s.packet_with(payload);
    change(packet);
    s.at(0ms)
        .wire_delivers_packet(packet, line)
        .expect_silence(line)
        .expect_counter(reason, 1, line);
  };
  static const std::vector<uint8_t> big(260);
  dropped(Counter::kDroppedWrongTransport,
          [](auto& packet) { packet.bth.opcode = wire::Opcode::kRcSendOnly; });
  dropped(Counter::kDroppedUnsupported,
          [](auto& packet) { packet.bth.opcode = wire::Opcode::kUdSendOnlyImm; });
  dropped(Counter::kDroppedWrongPkey, [](auto& packet) { packet.bth.pkey = 0x8001; });
  dropped(Counter::kDroppedWrongQkey, [](auto& packet) { packet.deth.qkey = 0x11111111; });
  dropped(Counter::kDroppedWrongSource, [](auto& packet) { packet.deth.src_qpn = 17; });
  dropped(Counter::kDroppedWrongSource,
          [](auto& packet) { packet.dst_ip = wire::IpAddress::from_v4(127, 0, 0, 2); });
  dropped(Counter::kDroppedMalformed, [](auto& packet) { packet.payload = std::span(big); });
  dropped(Counter::kDroppedMalformed,
          [](auto& packet) { packet.payload = packet.payload.first(252); });
  dropped(Counter::kDroppedMalformed, [](auto& packet) { packet.payload = {}; });
  CmScript s;  // the unchanged packet is accepted
  s.wire_delivers_packet(s.packet_with(rtu_for_nobody(s)));
  s.expect_sent({s.our_rej(CmRejectReason::kInvalidCommId, CmRejected::kNoMessage)});
}

TEST(GeneralServices, MalformedMessagesAreCounted) {
  CmScript s;
  Mad mad;
  wire::emit({.transaction_id = 1, .message = wire::CmRej{}}, mad);
  mad[wire::MadHeader::kSize + 9] = 0xff;
  s.wire_delivers_packet(s.packet_with(mad)).expect_silence();
  s.expect_counter(Counter::kDroppedMalformed, 1);
}

// IBTA vol 1, 13.4.7: a Get or Set that is not supported is answered by a response that says so. No
// other unsupported message is answered.
TEST(GeneralServices, OnlyGetAndSetAreAnsweredWhenNotSupported) {
  const auto answer = [](const wire::MadHeader& header) -> std::optional<wire::MadHeader> {
    CmScript s;
    Mad mad{};
    mad[200] = 0x5a;
    wire::emit(header, std::span(mad).first<wire::MadHeader::kSize>());
    s.wire_delivers_packet(s.packet_with(mad));
    s.expect_silence().expect_counter(Counter::kDroppedUnsupported, 1);
    if (s.last_packet().payload.empty()) return std::nullopt;
    EXPECT_EQ(s.last_packet().dst_ip, s.peer_ip());
    EXPECT_EQ(s.last_packet().payload[200], 0x5a);
    return wire::parse_mad_header(s.last_packet().payload.first<wire::MadHeader::kSize>());
  };
  const wire::MadHeader port_counters{.mgmt_class = 0x04,
                                      .class_version = 1,
                                      .method = 0x01,
                                      .transaction_id = 0x123456789a,
                                      .attribute_id = 0x12,
                                      .attribute_modifier = 1};
  wire::MadHeader expected = port_counters;
  expected.method = 0x81;
  expected.status = 0x000c;
  EXPECT_EQ(answer(port_counters), expected);

  wire::MadHeader set = port_counters;
  set.method = 0x02;
  EXPECT_EQ(answer(set), expected);

  wire::MadHeader cm_get{.mgmt_class = 0x07, .class_version = 2, .method = 0x01, .attribute_id = 1};
  expected = cm_get;
  expected.method = 0x81;
  expected.status = 0x000c;
  EXPECT_EQ(answer(cm_get), expected);
  cm_get.class_version = 1;
  expected.class_version = 1;
  expected.status = 0x0004;
  EXPECT_EQ(answer(cm_get), expected);

  for (const int method : {0x00, 0x03, 0x05, 0x06, 0x81, 0x83, 0x85}) {
    wire::MadHeader other = port_counters;
    other.method = static_cast<uint8_t>(method);
    EXPECT_EQ(answer(other), std::nullopt) << method;
  }
  EXPECT_EQ(answer({.mgmt_class = 0x07, .class_version = 2, .method = 0x03, .attribute_id = 0x1b}),
            std::nullopt);
}

// The MAD is a valid request for the program's service, except that its version, class, method or
// attribute is wrong.
TEST(GeneralServices, AMadOfAnotherVersionClassMethodOrAttributeIsDropped) {
  const auto expect_dropped = [](const std::function<void(wire::MadHeader&)>& change) {
    CmScript s;
    s.app_listens();
    Mad mad;
    wire::emit({.transaction_id = 1, .message = s.peer_req()}, mad);
    wire::MadHeader header = wire::parse_mad_header(std::span(mad).first<wire::MadHeader::kSize>());
    change(header);
    wire::emit(header, std::span(mad).first<wire::MadHeader::kSize>());
    s.wire_delivers_packet(s.packet_with(mad)).expect_silence();
    s.expect_counter(Counter::kDroppedUnsupported, 1);
    EXPECT_EQ(s.manager().size(), 0u);
  };
  for (const int version : {0, 2, 255}) {
    expect_dropped(
        [=](wire::MadHeader& header) { header.base_version = static_cast<uint8_t>(version); });
  }
  for (const int version : {0, 1, 3, 255}) {
    expect_dropped(
        [=](wire::MadHeader& header) { header.class_version = static_cast<uint8_t>(version); });
  }
  for (const int number : {0x00, 0x01, 0x03, 0x08, 0x81, 0xff}) {
    expect_dropped(
        [=](wire::MadHeader& header) { header.mgmt_class = static_cast<uint8_t>(number); });
  }
  for (const int attribute : {0, 0x01, 0x0f, 0x1b, 0xffff}) {
    expect_dropped(
        [=](wire::MadHeader& header) { header.attribute_id = static_cast<uint16_t>(attribute); });
  }
}

// A MAD has 256 bytes. A shorter message is not a MAD, wherever it was truncated.
TEST(GeneralServices, ATruncatedMadIsDropped) {
  CmScript s;
  s.app_listens();
  Mad mad;
  wire::emit({.transaction_id = 1, .message = s.peer_req()}, mad);
  uint64_t count = 0;
  for (size_t size = 0; size < mad.size(); ++size) {
    s.wire_delivers_packet(s.packet_with(std::span(mad).first(size))).expect_silence();
    s.expect_counter(Counter::kDroppedMalformed, ++count);
  }
  EXPECT_EQ(s.manager().size(), 0u);
}

// ---- Strangers ----

TEST(GeneralServices, RequestsForUnknownServicesLeaveNothingBehind) {
  CmScript s;
  wire::CmReq req = s.peer_req();
  wire::CmSidrReq sidr{.request_id = 1, .service_id = CmScript::kService};
  for (uint32_t i = 0; i < 1000; ++i) {
    req.local_comm_id = sidr.request_id = 1 + i;
    req.local_qpn = 2 + i;
    s.wire_delivers(req).wire_delivers(sidr);
    wire::CmRej rej = s.our_rej(CmRejectReason::kInvalidServiceId, CmRejected::kReq);
    rej.local_comm_id = 0;
    rej.remote_comm_id = 1 + i;
    s.expect_sent(
        {rej, wire::CmSidrRep{.request_id = 1 + i, .status = 1, .service_id = CmScript::kService}});
  }
  EXPECT_EQ(s.manager().size(), 0u);
  EXPECT_EQ(s.fabric().next_deadline(), std::nullopt);
}

TEST(GeneralServices, HalfOpenConnectionsCostTheirTableEntriesAndNoWork) {
  CmScript s;
  s.at(0ms).app_listens();
  wire::CmReq req = s.peer_req();
  for (uint32_t i = 0; i < 1000; ++i) {
    req.local_comm_id = 1 + i;
    req.local_qpn = 2 + i;
    s.wire_delivers(req).expect_told({EventKind::kRequest});
  }
  EXPECT_EQ(s.manager().size(), 1000u);
  EXPECT_EQ(s.fabric().next_deadline(), std::nullopt);  // no connection needs a timer
  s.at(10000s).expect_silence();
}

TEST(GeneralServices, AFullTableRejectsForLackOfResourcesAndRecovers) {
  CmScript s;
  s.at(0ms).app_listens();
  wire::CmReq req = s.peer_req();
  std::vector<engine::cm::ConnectionId> ids;
  for (uint32_t i = 0; i < engine::cm::ConnectionTable::kLimit; ++i) {
    req.local_comm_id = 1 + i;
    req.local_qpn = 2 + i;
    s.wire_delivers(req).expect_told({EventKind::kRequest});
    ids.push_back(s.id());
  }
  ++req.local_comm_id;
  ++req.local_qpn;
  wire::CmRej rej = s.our_rej(CmRejectReason::kNoResources, CmRejected::kReq);
  rej.local_comm_id = 0;
  rej.remote_comm_id = req.local_comm_id;
  s.wire_delivers(req).expect_sent({rej});
  s.wire_delivers(wire::CmSidrReq{.request_id = 5, .service_id = CmScript::kService});
  s.expect_sent({wire::CmSidrRep{.request_id = 5, .status = 3, .service_id = CmScript::kService}});
  s.app([&](auto& manager) { EXPECT_EQ(manager.connect(s.request()).error(), ENOMEM); });

  rej = s.our_rej(CmRejectReason::kConsumer, CmRejected::kReq);
  rej.local_comm_id = ids[0].value;
  rej.remote_comm_id = 1;
  s.app([&](auto& manager) { manager.destroy(ids[0]); }).expect_sent({rej});
  s.at(100s).wire_delivers(req).expect_told({EventKind::kRequest});
}

// The messages are nearly valid, with random fields. The connection manager has connections in
// every state.
TEST(GeneralServices, HostileMessagesDoNoHarm) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    engine::Random random(seed);
    engine::Outputs outputs;
    ArrayMemory memory;
    engine::Fabric fabric(engine::default_fabric(1), memory);
    engine::cm::ConnectionManager& manager = fabric.connections;
    CmScript template_of_messages;
    engine::Instant now{};
    std::vector<engine::cm::ConnectionId> ids(1);
    fabric.begin_step(now, outputs);
    fabric.begin_expiry();
    ASSERT_TRUE(manager.listen({.service_id = CmScript::kService}));
    const auto pick = [&](size_t n) { return static_cast<size_t>(random.next() % n); };
    for (int i = 0; i < 2000; ++i) {
      now += engine::Duration(random.next() % 2'000'000'000);
      fabric.begin_step(now, outputs);
      fabric.begin_expiry();
      const auto id = ids[pick(ids.size())];
      const auto& t = template_of_messages;
      switch (pick(10)) {
        case 0:
          if (const auto made = manager.connect(t.request())) ids.push_back(*made);
          break;
        case 1:
          (void)manager.accept(id, t.acceptance());
          break;
        case 2:
          (void)manager.ready(id);
          break;
        case 3:
          if (pick(2) == 0) (void)manager.disconnect(id);
          (void)manager.answer_disconnect(id);
          break;
        case 4:
          if (pick(4) == 0) manager.destroy(id);
          break;
        default: {
          const wire::CmMessage messages[] = {
              t.peer_req(),
              t.peer_rep(),
              t.peer_rtu(),
              t.peer_dreq(),
              t.peer_drep(),
              t.peer_rej(CmRejectReason::kTimeout, CmRejected::kNoMessage),
              t.peer_mra(wire::CmMraed::kReq, 10),
              wire::CmLap{},
              wire::CmApr{},
              wire::CmSidrReq{.service_id = CmScript::kService},
              wire::CmSidrRep{}};
          Mad mad;
          wire::emit({.transaction_id = random.next(), .message = messages[pick(11)]}, mad);
          const auto put = [&](size_t at, uint32_t value) {
            for (unsigned b = 0; b < 4; ++b) {
              mad[wire::MadHeader::kSize + at + b] = static_cast<uint8_t>(value >> (24 - 8 * b));
            }
          };
          if (pick(3) == 0) put(0, static_cast<uint32_t>(pick(4)));
          if (pick(3) != 0) put(4, id.value);
          for (size_t flips = pick(3); flips > 0; --flips) {
            mad[pick(mad.size())] ^= static_cast<uint8_t>(1u << pick(8));
          }
          const wire::Packet packet = t.packet_with(mad);
          std::vector<uint8_t> frame(wire::frame_size(packet, mad.size()));
          wire::emit_frame(packet, frame);
          const engine::ReceivedFrame received{engine::DeviceIndex{0}, frame};
          fabric.receive({{&received, 1}});
        }
      }
      fabric.run();
      while (const auto event = manager.next_event()) {
        ids.push_back(event->connection);
      }
      outputs.clear();
    }
    // Whatever happened before, all connections must end.
    for (const auto id : ids) {
      fabric.begin_step(now, outputs);
      fabric.begin_expiry();
      manager.destroy(id);
      fabric.run();
      outputs.clear();
    }
    for (auto next = manager.next_deadline(); next; next = manager.next_deadline()) {
      now = std::max(now, *next);
      fabric.begin_step(now, outputs);
      fabric.begin_expiry();
      fabric.run();
      while (const auto event = manager.next_event()) manager.destroy(event->connection);
      outputs.clear();
    }
    EXPECT_EQ(manager.size(), 0u);
  }
}

}  // namespace
}  // namespace rocemu::test
