// Tests datagrams and multicast (IBTA vol 1, 9.8.3 and 10.5; ibv_post_send(3), ibv_post_recv(3)).
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <numeric>

#include "tests/support/pair.h"
#include "tests/support/script.h"
#include "wire/ethernet.h"

namespace rocemu::test {
namespace {

using abi::WcStatus;
using abi::WrOpcode;
using engine::Counter;

constexpr uint32_t kQkey = 0x1234;
constexpr wire::IpAddress kLeft = wire::IpAddress::from_v4(10, 0, 0, 1);
constexpr wire::IpAddress kRight = wire::IpAddress::from_v4(10, 0, 0, 2);
constexpr wire::IpAddress kGroup4 = wire::IpAddress::from_v4(224, 129, 2, 3);
constexpr wire::IpAddress kGroup6 = {
    {0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44}};
constexpr uint32_t kMulticastQpn = 0xffffff;

ScriptOptions ud(bool ipv6 = false) {
  ScriptOptions options;
  options.connection.type = abi::QpType::kUd;
  options.ipv6 = ipv6;
  return options;
}

PacketSpec datagram(wire::Psn n, uint32_t src_qpn = Script::kPeerQpn, uint32_t qkey = kQkey) {
  PacketSpec spec = packet(wire::Opcode::kUdSendOnly, n).ack_req(false);
  spec.packet.deth = {.qkey = qkey, .src_qpn = src_qpn};
  return spec;
}

CompletionSpec received_datagram(uint64_t wr_id) {
  return received(wr_id).grh();
}

SendWr to_peer(Endpoint& from, uint32_t ah, uint32_t qpn, uint32_t length = 8,
               uint32_t qkey = kQkey) {
  return {.wr_id = 1,
          .sges = {from.send_sge(length)},
          .ah = ah,
          .remote_qpn = qpn,
          .remote_qkey = qkey};
}

/// A script with a UD QP and an address handle for its peer.
struct DatagramScript : Script {
  explicit DatagramScript(const ScriptOptions& options = ud()) : Script(options) {
    ah = client().create_ah(app().pd, address_vector(peer_ip(), options.ipv6 ? 1 : 0));
  }
  SendWr wr(uint32_t length = 8, uint32_t qkey = kQkey) {
    return to_peer(app(), ah, kPeerQpn, length, qkey);
  }
  uint32_t ah;
};

TEST(Datagram, IsSentToTheAddressHandlesPeerAndCompletesAtOnce) {
  DatagramScript s;
  s.at(0ms).app_posts(s.wr(100)).expect(
      {datagram(psn(0), s.qpn()).of_length(100), completion(1).bytes(100)});
  s.at(1ms).app_posts(s.wr(0)).expect({datagram(psn(1), s.qpn()).of_length(0), completion(1)});
  s.at(10000ms).expect_silence();
}

TEST(Datagram, CarriesImmediateData) {
  DatagramScript s;
  SendWr wr = s.wr(4);
  wr.opcode = WrOpcode::kSendWithImm;
  wr.imm = 77;
  PacketSpec expected = packet(wire::Opcode::kUdSendOnlyImm, psn(0)).ack_req(false);
  expected.packet.deth = {.qkey = kQkey, .src_qpn = s.qpn()};
  expected.packet.imm.value = 77;
  s.at(0ms).app_posts(wr).expect({expected, completion(1)});
}

// As with Linux rxe, all datagrams of a QP have the same UDP source port.
TEST(Datagram, HasASourcePortOfItsQp) {
  DatagramScript s;
  s.at(0ms).app_posts(s.wr());
  ASSERT_EQ(s.bench().log.size(), 2u);
  const auto frame = std::get<engine::TransmitFrame>(s.bench().log[0].output).frame;
  const auto packet = wire::parse_frame(frame.bytes());
  EXPECT_EQ(packet->udp_src_port, 0xc000 + ((s.qpn() * 0x61c88647u) >> 18));
  s.bench().log.clear();
}

// IBTA vol 1, 10.2.5: "If the high order bit of the Q_Key is set, the Q_Key of the QP is used".
TEST(Datagram, AControlledQkeyStandsForTheQpsOwn) {
  DatagramScript s;
  s.at(0ms)
      .app_posts(s.wr(8, 0x80010000))
      .expect({datagram(psn(0), s.qpn(), kQkey), completion(1)});
}

TEST(Datagram, LongerThanThePortsMtuIsALengthErrorThatStopsTheSendQueue) {
  DatagramScript s;
  s.at(0ms).app_posts(s.wr(4096)).expect({datagram(psn(0), s.qpn()), completion(1)});
  s.at(1ms).app_posts(s.wr(4097)).expect({failed(1, WcStatus::kLocLenErr)});
  s.expect_state(abi::QpState::kSqe);
  abi::QpAttr attr{};
  attr.qp_state = static_cast<uint32_t>(abi::QpState::kRts);
  attr.cur_qp_state = static_cast<uint32_t>(abi::QpState::kSqe);
  s.at(2ms).app_modifies(attr, abi::kAttrState | abi::kAttrCurState);
  s.app_posts(s.wr()).expect({datagram(psn(1), s.qpn()), completion(1)});
}

TEST(Datagram, NeedsAnAddressHandleOfItsProtectionDomain) {
  DatagramScript s;
  const auto bad = failed(1, WcStatus::kLocQpOpErr).vendor(engine::VendorError::kBadAddressHandle);
  const uint32_t other_pd = s.client().alloc_pd();
  const uint32_t foreign = s.client().create_ah(other_pd, address_vector(s.peer_ip()));
  s.at(0ms).app_posts(to_peer(s.app(), foreign, 5)).expect({bad});
  s.at(1ms).app_sets_state(abi::QpState::kRts).app_posts(to_peer(s.app(), 999, 5)).expect({bad});
  EXPECT_EQ(s.client().destroy_ah(s.ah), 0);
  s.at(2ms).app_sets_state(abi::QpState::kRts).app_posts(s.wr()).expect({bad});
}

TEST(Datagram, CannotBeAWriteOrARead) {
  DatagramScript s;
  for (const WrOpcode opcode : {WrOpcode::kRdmaWrite, WrOpcode::kRdmaRead,
                                WrOpcode::kAtomicFetchAndAdd, WrOpcode::kSendWithInv}) {
    SendWr wr = s.wr();
    wr.opcode = opcode;
    s.app_posts(wr).expect(
        {failed(1, WcStatus::kLocQpOpErr).vendor(engine::VendorError::kOpcodeNotSupported)});
    s.app_sets_state(abi::QpState::kRts);
  }
}

// Annex A17.4.5.2: the 40 bytes before the data are 20 undefined bytes, then the IPv4 header as it
// arrived.
TEST(DatagramReceiver, FindsTheIpv4HeaderInTheLast20BytesOfTheRouteHeader) {
  DatagramScript s;
  s.at(0ms).app_posts_recv(5);
  const auto bytes = s.frame(datagram(psn(77)).with({1, 2, 3}));
  s.at(1ms).wire_delivers_bytes(bytes).expect(
      {received_datagram(5).bytes(43).from_qp(Script::kPeerQpn)});
  std::vector<uint8_t> expected(43);
  std::copy_n(bytes.begin() + wire::EthernetHeader::kSize, 20, expected.begin() + 20);
  std::iota(expected.begin() + 40, expected.end(), uint8_t{1});
  s.expect_received(expected);
}

TEST(DatagramReceiver, FindsTheWholeIpv6Header) {
  DatagramScript s(ud(true));
  s.at(0ms).app_posts_recv(5);
  const auto bytes = s.frame(datagram(psn(0)).with({9}));
  s.at(1ms).wire_delivers_bytes(bytes).expect({received_datagram(5).bytes(41)});
  std::vector<uint8_t> expected(bytes.begin() + wire::EthernetHeader::kSize,
                                bytes.begin() + wire::EthernetHeader::kSize + 40);
  expected.push_back(9);
  s.expect_received(expected);
}

TEST(DatagramReceiver, AcceptsDatagramsOfAnySenderInAnyOrder) {
  DatagramScript s;
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.at(1ms)
      .wire_delivers(datagram(psn(500), 17).from(wire::IpAddress::from_v4(10, 0, 0, 77)))
      .expect({received_datagram(1).from_qp(17)});
  s.at(2ms).wire_delivers(datagram(psn(3), 18)).expect({received_datagram(2).from_qp(18)});
}

TEST(DatagramReceiver, AWrongQkeyIsDroppedAndCountedByThePort) {
  DatagramScript s;
  s.at(0ms).app_posts_recv(1);
  s.at(1ms).wire_delivers(datagram(psn(0), 17, kQkey + 1)).expect_silence();
  s.expect_counter(Counter::kDroppedWrongQkey, 1);
  abi::Request::Body body{};
  body.query_port.port = 1;
  EXPECT_EQ(s.client().command(abi::Op::kQueryPort, body).body.port.qkey_viol_cntr, 1u);
  s.at(2ms).wire_delivers(datagram(psn(0))).expect({received_datagram(1)});
}

TEST(DatagramReceiver, WithoutAReceiveWqeItIsDropped) {
  DatagramScript s;
  s.at(0ms).wire_delivers(datagram(psn(0))).expect_silence();
  s.expect_counter(Counter::kDroppedNoReceive, 1);
  s.at(1ms).app_posts_recv(1);
  s.at(2ms).wire_delivers(datagram(psn(1))).expect({received_datagram(1)});
}

// IBTA vol 1, 9.9.3, class D: the datagram is dropped, and the next one uses its WQE. Otherwise
// every peer that knows the Q_Key could make the QP fail. The 40 bytes of the route header count
// for the length.
TEST(DatagramReceiver, OneTooLongForTheReceiveIsDroppedAndTheReceiveStays) {
  DatagramScript s;
  s.at(0ms).app_posts_recv(1, 47).app_posts_recv(2, 48);
  s.at(1ms).wire_delivers(datagram(psn(0)).of_length(8)).expect_silence();
  s.at(2ms).wire_delivers(datagram(psn(1)).of_length(4096)).expect_silence();
  s.expect_state(abi::QpState::kRts).expect_counter(Counter::kDroppedReceiveTooSmall, 2);
  s.expect_received(std::vector<uint8_t>(47));  // no byte of the dropped datagrams was written
  s.at(3ms).wire_delivers(datagram(psn(2)).of_length(7)).expect({received_datagram(1).bytes(47)});
  s.at(4ms).wire_delivers(datagram(psn(3)).of_length(8)).expect({received_datagram(2).bytes(48)});
}

// The SRQ is not affected: no WQE is missing for the other QPs, and no limit is reached.
TEST(DatagramReceiver, OneTooLongForTheReceiveLeavesTheSrqAsItIs) {
  ScriptOptions options = ud();
  options.srq_wr = 4;
  DatagramScript s(options);
  s.at(0ms).app_posts_recv(1, 47).app_posts_recv(2, 48);
  s.client().modify_srq(s.app().srq, abi::kSrqLimit, 0, 2);
  s.at(1ms).wire_delivers(datagram(psn(0)).of_length(8)).expect_silence();
  EXPECT_EQ(s.bench().engine().snapshot().devices[0].srqs[0].posted, 2u);
  s.at(2ms)
      .wire_delivers(datagram(psn(1)).of_length(7))
      .expect({event(abi::EventType::kSrqLimitReached, Endpoint::kSrqHandle),
               CompletionSpec(1).on(abi::WorkQueue::kSrq).grh().bytes(47)});
}

// An error in the receiver's own WQE still makes the QP fail (class A).
TEST(DatagramReceiver, ABadLKeyFailsTheQp) {
  DatagramScript s;
  s.at(0ms).app_posts_recv_list({.wr_id = 1, .sges = {{Endpoint::kRecvBuffer, 64, 12345}}});
  s.at(1ms).wire_delivers(datagram(psn(0)).of_length(8)).expect({failed(1, WcStatus::kLocProtErr)});
  s.expect_state(abi::QpState::kErr);
}

TEST(DatagramReceiver, ReceivesBetweenRtrAndTheErrorState) {
  ScriptOptions options = ud();
  options.state = abi::QpState::kRtr;
  DatagramScript s(options);
  s.at(0ms).app_posts_recv(1);
  s.at(1ms).wire_delivers(datagram(psn(0))).expect({received_datagram(1)});
}

PairOptions ud_pair(bool same_device = false, bool without_grh = false) {
  PairOptions options;
  options.left = ud();
  options.right = ud();
  options.same_device = same_device;
  options.without_grh = without_grh;
  return options;
}

TEST(DatagramPair, ArrivesAcrossDevicesAndOnOne) {
  for (const bool same_device : {false, true}) {
    Pair pair(ud_pair(same_device));
    pair.right.post_recv({.wr_id = 4, .sges = {pair.right.recv_sge(100)}});
    const uint32_t ah =
        pair.left.client.create_ah(pair.left.pd, address_vector(same_device ? kLeft : kRight));
    pair.left.fill_send_buffer({5, 6, 7});
    pair.left.post_send(to_peer(pair.left, ah, pair.right.qpn, 3));
    EXPECT_EQ(pair.take_left().size(), 1u);
    const auto done = pair.take_right();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].byte_len, 43u);
    EXPECT_EQ(done[0].src_qp, pair.left.qpn);
    EXPECT_EQ(pair.right.recv_bytes(3, 40), (std::vector<uint8_t>{5, 6, 7}));
  }
}

TEST(DatagramPair, WithoutARouteHeaderInTheAddressVectorTheQpNumberDecides) {
  Pair pair(ud_pair());
  pair.right.post_recv({.wr_id = 4, .sges = {pair.right.recv_sge(100)}});
  abi::AhAttr attr{};
  attr.port_num = 1;
  attr.dlid = 3;
  const uint32_t ah = pair.left.client.create_ah(pair.left.pd, attr);
  pair.left.post_send(to_peer(pair.left, ah, pair.right.qpn));
  const auto done = pair.take_right();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].wc_flags, static_cast<uint32_t>(abi::kWcGrh));
}

// As with mlx5, the completion's sl field shows whether the packet is IPv4: UCX before 1.19 reads
// the type there.
TEST(DatagramPair, TheServiceLevelOfAReceiveTellsTheTypeOfThePacket) {
  for (const bool is_v4 : {true, false}) {
    PairOptions options = ud_pair(true);
    Pair pair(options);
    pair.right.post_recv({.wr_id = 4, .sges = {pair.right.recv_sge(100)}});
    abi::AhAttr attr = address_vector(kLeft);
    if (!is_v4) {
      attr.sgid_index = 1;
      std::ranges::copy(wire::parse_ip_address("fd00::1")->bytes, attr.dgid);
    }
    const uint32_t ah = pair.left.client.create_ah(pair.left.pd, attr);
    pair.left.post_send(to_peer(pair.left, ah, pair.right.qpn));
    const auto done = pair.take_right();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].sl, is_v4 ? 2 : 1);
  }
}

TEST(DatagramPair, ReceivesFromASharedReceiveQueue) {
  PairOptions options = ud_pair();
  options.right.srq_wr = 4;
  Pair pair(options);
  pair.right.post_recv({.wr_id = 4, .sges = {pair.right.recv_sge(100)}});
  const uint32_t ah = pair.left.client.create_ah(pair.left.pd, address_vector(kRight));
  pair.left.post_send(to_peer(pair.left, ah, pair.right.qpn));
  const auto done = pair.take_right();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].queue, abi::WorkQueue::kSrq);
}

// ---- Multicast ----

int attach(Client& client, uint32_t qpn, const wire::IpAddress& group,
           abi::Op op = abi::Op::kAttachMcast) {
  abi::Request::Body body{};
  body.mcast.qpn = qpn;
  std::copy(group.bytes.begin(), group.bytes.end(), body.mcast.gid);
  return client.command(op, body).error;
}
int detach(Client& client, uint32_t qpn, const wire::IpAddress& group) {
  return attach(client, qpn, group, abi::Op::kDetachMcast);
}

// 10.5.2: the message is delivered to each attached QP, on each device, including the sender's.
TEST(Multicast, ReachesEachAttachedQpOnce) {
  Pair pair(ud_pair());
  const uint32_t second = pair.right.client.create_qp({.pd = pair.right.pd,
                                                       .send_cq = pair.right.send_cq,
                                                       .recv_cq = pair.right.recv_cq,
                                                       .type = abi::QpType::kUd,
                                                       .cap = EndpointOptions{}.cap});
  ASSERT_TRUE(bring_up(pair.right.client, second, abi::QpState::kRts, ud().connection, {}, 0));
  EXPECT_EQ(attach(pair.left.client, pair.left.qpn, kGroup4), 0);
  EXPECT_EQ(attach(pair.right.client, pair.right.qpn, kGroup4), 0);
  EXPECT_EQ(attach(pair.right.client, pair.right.qpn, kGroup4), 0);  // "a single copy"
  EXPECT_EQ(attach(pair.right.client, second, kGroup4), 0);
  for (uint64_t i = 0; i < 2; ++i) {
    pair.left.post_recv({.wr_id = 10 + i, .sges = {pair.left.recv_sge(100)}});
    pair.right.post_recv({.wr_id = 20 + i, .sges = {pair.right.recv_sge(100)}});
    pair.right.client.post_recv(second, {.wr_id = 30 + i, .sges = {pair.right.recv_sge(100)}});
  }
  const uint32_t ah = pair.left.client.create_ah(pair.left.pd, address_vector(kGroup4));
  pair.left.post_send(to_peer(pair.left, ah, kMulticastQpn));
  const auto left = pair.take_left();
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].queue, abi::WorkQueue::kSend);
  EXPECT_EQ(left[1].wr_id, 10u);
  const auto right = pair.take_right();
  ASSERT_EQ(right.size(), 2u);
  EXPECT_EQ(right[0].wr_id, 20u);
  EXPECT_EQ(right[1].wr_id, 30u);

  EXPECT_EQ(detach(pair.right.client, second, kGroup4), 0);
  pair.left.post_send(to_peer(pair.left, ah, kMulticastQpn));
  EXPECT_EQ(pair.take_right().size(), 1u);
}

TEST(Multicast, GoesOutToTheGroupsLinkAddress) {
  for (const bool ipv6 : {false, true}) {
    DatagramScript s(ud(ipv6));
    const uint32_t ah =
        s.client().create_ah(s.app().pd, address_vector(ipv6 ? kGroup6 : kGroup4, ipv6 ? 1 : 0));
    s.at(0ms);
    s.app().post_send(to_peer(s.app(), ah, kMulticastQpn));
    ASSERT_EQ(s.bench().log.size(), 2u);
    const auto frame = std::get<engine::TransmitFrame>(s.bench().log[0].output).frame;
    const auto packet = wire::parse_frame(frame.bytes());
    // The MAC addresses of groups: RFC 1112, 6.4 (23 bits of the group address); RFC 2464, 7.
    const wire::MacAddress v4 = {{0x01, 0x00, 0x5e, 0x01, 2, 3}};
    const wire::MacAddress v6 = {{0x33, 0x33, 0x11, 0x22, 0x33, 0x44}};
    EXPECT_EQ(packet->dst_mac, ipv6 ? v6 : v4);
    EXPECT_EQ(packet->dst_ip, ipv6 ? kGroup6 : kGroup4);
    EXPECT_EQ(packet->bth.dest_qpn, kMulticastQpn);
    s.bench().log.clear();
  }
}

TEST(Multicast, FromOutsideReachesTheAttached) {
  DatagramScript s;
  EXPECT_EQ(attach(s.client(), s.qpn(), kGroup4), 0);
  s.at(0ms).app_posts_recv(1).app_posts_recv(2);
  s.at(1ms)
      .wire_delivers(datagram(psn(0)).to(kGroup4).to_qp(kMulticastQpn))
      .expect({received_datagram(1)});
  s.at(2ms)
      .wire_delivers(datagram(psn(0)).to(kGroup6).to_qp(kMulticastQpn).from(kGroup6))
      .expect_silence();
  s.at(3ms).wire_delivers(datagram(psn(0)).to_qp(kMulticastQpn)).expect_silence();
}

TEST(Multicast, IsForDatagramQpsAndMulticastGidsOnly) {
  DatagramScript s;
  EXPECT_EQ(attach(s.client(), s.qpn(), kRight), EINVAL);
  EXPECT_EQ(attach(s.client(), s.qpn() + 1, kGroup4), ENOENT);
  EXPECT_EQ(detach(s.client(), s.qpn(), kGroup4), EINVAL);
  Script rc;
  EXPECT_EQ(attach(rc.client(), rc.qpn(), kGroup4), EINVAL);
}

// ibv_destroy_qp(3): "fails if the QP is attached to a multicast group".
TEST(Multicast, KeepsItsQpBusyAndGoesWithTheClient) {
  Pair pair(ud_pair());
  EXPECT_EQ(attach(pair.right.client, pair.right.qpn, kGroup6), 0);
  EXPECT_EQ(pair.right.client.destroy_qp(pair.right.qpn), EBUSY);
  EXPECT_EQ(detach(pair.right.client, pair.right.qpn, kGroup6), 0);
  EXPECT_EQ(attach(pair.right.client, pair.right.qpn, kGroup4), 0);
  pair.bench.detach(pair.right.client.id());
  const uint32_t ah = pair.left.client.create_ah(pair.left.pd, address_vector(kGroup4));
  pair.left.post_send(to_peer(pair.left, ah, kMulticastQpn));
  EXPECT_EQ(pair.take_left().size(), 1u);
}

TEST(Multicast, HasTheLimitsThatTheDeviceReports) {
  DatagramScript s;
  const abi::DeviceAttr device = s.client().command(abi::Op::kQueryDevice, {}).body.device;
  ASSERT_GE(device.max_mcast_qp_attach, 56u);
  for (uint32_t i = 0; i < device.max_mcast_qp_attach; ++i) {
    const uint32_t qpn = s.client().create_qp({.pd = s.app().pd,
                                               .send_cq = s.app().send_cq,
                                               .recv_cq = s.app().recv_cq,
                                               .type = abi::QpType::kUd,
                                               .cap = EndpointOptions{}.cap});
    ASSERT_EQ(attach(s.client(), qpn, kGroup4), 0);
  }
  EXPECT_EQ(attach(s.client(), s.qpn(), kGroup4), ENOMEM);
  ASSERT_GE(device.max_mcast_grp, 8192u);
  for (uint32_t i = 1; i < device.max_mcast_grp; ++i) {
    wire::IpAddress group = kGroup6;
    group.bytes[12] = static_cast<uint8_t>(i >> 8);
    group.bytes[13] = static_cast<uint8_t>(i);
    ASSERT_EQ(attach(s.client(), s.qpn(), group), 0);
  }
  wire::IpAddress one_more = kGroup6;
  one_more.bytes[1] = 0x05;
  EXPECT_EQ(attach(s.client(), s.qpn(), one_more), ENOMEM);
}

// ---- Ports that are down ----

TEST(Port, DownNeitherSendsNorReceivesAndTellsEachClientOfTheDevice) {
  Script s;
  Client second(s.bench(), engine::ClientId{2}, engine::DeviceIndex{0});
  s.at(0ms).app_posts_recv(1);
  s.bench().step(engine::SetPort{engine::DeviceIndex{0}, false});
  s.expect({event(abi::EventType::kPortErr, 1), event(abi::EventType::kPortErr, 1)});
  s.bench().step(engine::SetPort{engine::DeviceIndex{0}, false});
  s.expect_silence();
  abi::Request::Body body{};
  body.query_port.port = 1;
  EXPECT_EQ(s.client().command(abi::Op::kQueryPort, body).body.port.state,
            static_cast<uint32_t>(abi::PortState::kDown));
  s.at(1ms).wire_delivers(send_only(psn(0))).expect_silence();
  s.expect_counter(Counter::kDroppedPortDown, 1);
  s.at(2ms).app_posts_send(7).expect_silence();
  s.expect_counter(Counter::kDroppedPortDown, 2);
  s.bench().step(engine::SetPort{engine::DeviceIndex{0}, true});
  s.expect({event(abi::EventType::kPortActive, 1), event(abi::EventType::kPortActive, 1)});
  s.at(3ms).wire_delivers(send_only(psn(0))).expect({received(1), ack(psn(0))});
  // The SEND was lost while the link was down; its retry arrives.
  s.at(2ms + ack_timeout(14)).expect({send_only(psn(0))});
  s.wire_delivers(ack(psn(0))).expect({completion(7)});
}

TEST(Port, DownForGoodEndsInRetryExceeded) {
  ScriptOptions options;
  options.connection.retry_cnt = 1;
  Script s(options);
  s.bench().step(engine::SetPort{engine::DeviceIndex{0}, false});
  s.expect({event(abi::EventType::kPortErr, 1)});
  s.at(0ms).app_posts_send(7).expect_silence();
  s.at(2 * ack_timeout(14)).expect({failed(7, WcStatus::kRetryExcErr)});
}

}  // namespace
}  // namespace rocemu::test
