// Tests which address vectors are refused, and to which destinations the accepted ones lead
// (ibv_modify_qp(3) ah_attr, ibv_create_ah(3); IBTA annex A17).
#include <gtest/gtest.h>

#include <cerrno>

#include "emulator/engine/transport/address_vector.h"
#include "tests/support/endpoint.h"
#include "tests/support/matchers.h"
#include "tests/support/pair.h"

namespace rocemu::test {
namespace {

using abi::QpState;
using engine::ClientId;
using engine::DeviceIndex;

constexpr auto kSecond = wire::IpAddress::from_v4(127, 0, 0, 2);
constexpr wire::IpAddress kLoopback6 = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};

abi::AhAttr no_grh() {
  abi::AhAttr attr{};
  attr.dlid = 1;
  attr.port_num = 1;
  return attr;
}

/// Returns the errno of create_ah and modify_qp for the vector, which must be equal.
int verdict(const abi::AhAttr& attr, const engine::FabricConfig& config) {
  Bench bench(config);
  Endpoint app(bench, ClientId{1}, DeviceIndex{0}, {});
  app.client.create_ah(app.pd, attr);
  const int of_ah = app.client.error;
  EXPECT_TRUE(bring_up(app.client, app.qpn, QpState::kInit, {}, {}, 0));
  const Transition to_rtr = transition_to(QpState::kRtr, {}, attr, app.qpn);
  const int of_qp = app.client.modify_qp(app.qpn, to_rtr.attr, to_rtr.mask);
  EXPECT_EQ(of_ah, of_qp);
  EXPECT_EQ(app.state(), of_qp == 0 ? QpState::kRtr : QpState::kInit);
  return of_qp;
}

int verdict(const abi::AhAttr& attr, bool require_grh = false) {
  engine::FabricConfig config = engine::default_fabric(2);
  config.devices[0].policy.require_grh = require_grh;
  return verdict(attr, config);
}

/// Returns the errno for a vector between these addresses, with a device that resolves neighbors.
int verdict_between(const char* own, const char* destination, bool outside = false) {
  engine::FabricConfig config = engine::default_fabric(2);
  engine::DeviceConfig& device = config.devices[0];
  device.addresses = {*wire::parse_ip_address(own)};
  device.outside = outside;
  device.policy.resolve_neighbors = true;
  config.devices[1].addresses = {*wire::parse_ip_address("10.0.0.2"),
                                 *wire::parse_ip_address("fd00::2")};
  return verdict(address_vector(*wire::parse_ip_address(destination), 0), config);
}

TEST(AddressVector, TakesOneToAnotherDeviceOrOutside) {
  EXPECT_EQ(verdict(address_vector(kSecond)), 0);
  EXPECT_EQ(verdict(address_vector(wire::IpAddress::from_v4(192, 0, 2, 1))), 0);
  EXPECT_EQ(verdict(address_vector(kLoopback6, 1)), 0);
}

TEST(AddressVector, NeedsPortOne) {
  for (const uint8_t port : {uint8_t{0}, uint8_t{2}}) {
    abi::AhAttr attr = address_vector(kSecond);
    attr.port_num = port;
    EXPECT_EQ(verdict(attr), EINVAL);
    attr = no_grh();
    attr.port_num = port;
    EXPECT_EQ(verdict(attr), EINVAL);
  }
}

TEST(AddressVector, NeedsASourceGidThatExists) {
  EXPECT_EQ(verdict(address_vector(kSecond, 2)), EINVAL);
  EXPECT_EQ(verdict(address_vector(kSecond, 255)), EINVAL);
  // If the destination is a group, the source may have the other address family, but must exist:
  // the devices of the test have the GID indexes 0 and 1.
  const wire::IpAddress group = *wire::parse_ip_address("ff12::1");
  EXPECT_EQ(verdict(address_vector(group, 1)), 0);
  EXPECT_EQ(verdict(address_vector(group, 2)), EINVAL);
}

TEST(AddressVector, NeedsBothAddressesOfOneFamily) {
  EXPECT_EQ(verdict(address_vector(kSecond, 1)), EINVAL);
  EXPECT_EQ(verdict(address_vector(kLoopback6, 0)), EINVAL);
}

// Linux computes a group's MAC address from its GID and does not resolve it
// (ib_resolve_eth_dmac()).
TEST(AddressVector, MayBeOfAGroupOfTheOtherFamily) {
  EXPECT_EQ(verdict(address_vector(*wire::parse_ip_address("ff12::1"), 0)), 0);
  EXPECT_EQ(verdict(address_vector(*wire::parse_ip_address("239.1.1.1"), 1)), 0);
  EXPECT_EQ(verdict_between("10.0.0.1", "ff01:0:2:c985::"), 0) << "as perftest's -g has it";
  EXPECT_EQ(verdict_between("10.0.0.1", "239.1.1.1"), 0);
}

// RFC 6890, 2.2.3: no packet may contain an IPv4-mapped address, so the source address has the
// family of the group.
TEST(AddressVector, AMessageToAGroupOfTheOtherFamilyHasASourceOfThatFamily) {
  const engine::FabricConfig config = engine::default_fabric(1);  // 127.0.0.1 and ::1
  const engine::Objects objects(config);
  const auto source = [&](const char* group, uint8_t sgid_index) {
    const abi::AhAttr attr = address_vector(*wire::parse_ip_address(group), sgid_index);
    return resolve_path(objects, DeviceIndex{0}, attr, engine::QpNumber{32}, engine::QpNumber{33})
        .src_ip;
  };
  EXPECT_EQ(source("ff12::1", 0), kLoopback6);
  EXPECT_EQ(source("ff12::1", 1), kLoopback6);
  EXPECT_EQ(source("239.1.1.1", 1), wire::IpAddress::from_v4(127, 0, 0, 1));
  EXPECT_EQ(source("239.1.1.1", 0), wire::IpAddress::from_v4(127, 0, 0, 1));
}

// Linux: rdma_addr_find_l2_eth_by_grh() waits a second for the neighbor.
TEST(AddressVector, ToAnAddressOnTheLinkThatNothingHasTimesOut) {
  EXPECT_EQ(verdict_between("10.0.0.1", "10.0.0.77"), ETIMEDOUT);
  EXPECT_EQ(verdict_between("127.0.0.1", "127.1.2.3"), ETIMEDOUT);
  EXPECT_EQ(verdict_between("fd00::1", "fd00::77"), ETIMEDOUT);
  EXPECT_EQ(verdict_between("fe80::1", "fe80::77"), ETIMEDOUT);
}

TEST(AddressVector, ToAnAddressOfADeviceIsAccepted) {
  EXPECT_EQ(verdict_between("10.0.0.1", "10.0.0.2"), 0);
  EXPECT_EQ(verdict_between("10.0.0.1", "10.0.0.1"), 0) << "its own";
  EXPECT_EQ(verdict_between("fd00::1", "fd00::2"), 0);
}

// The neighbor is the router, which answers address resolution.
TEST(AddressVector, ToAnAddressBehindARouterIsAccepted) {
  EXPECT_EQ(verdict_between("10.0.0.1", "10.0.1.1"), 0);
  EXPECT_EQ(verdict_between("10.0.0.1", "192.0.2.1"), 0);
  EXPECT_EQ(verdict_between("10.0.0.1", "127.0.0.1"), 0);
  EXPECT_EQ(verdict_between("fd00::1", "2001:db8::1"), 0);
}

// With --udp, peers are on other hosts, which the fabric does not know.
TEST(AddressVector, ToAnAddressOutsideTheFabricIsAccepted) {
  EXPECT_EQ(verdict_between("10.0.0.1", "10.0.0.77", true), 0);
  EXPECT_EQ(verdict_between("fe80::1", "fe80::77", true), 0);
}

TEST(AddressVector, NeedsBothAddressesOfOneFamilyBeforeANeighborIsAsked) {
  EXPECT_EQ(verdict_between("10.0.0.1", "fd00::77"), EINVAL);
  EXPECT_EQ(verdict_between("fd00::1", "10.0.0.77"), EINVAL);
}

// DevicePolicy::require_grh decides whether a vector without GRH is refused. By IBTA annex A17,
// RoCE needs a GRH.
TEST(AddressVector, NeedsAGrhIfThePolicySaysSo) {
  EXPECT_EQ(verdict(no_grh(), false), 0);
  EXPECT_EQ(verdict(no_grh(), true), EINVAL);
  EXPECT_EQ(verdict(address_vector(kSecond), true), 0);
}

TEST(AddressVector, WithoutAGrhLeadsToTheDeviceOfThePeersQp) {
  PairOptions options;
  options.without_grh = true;
  Pair pair(options);
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(8)}});
  pair.left.fill_send_buffer({1, 2, 3});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(3)}});
  ASSERT_EQ(pair.take_right().size(), 1u);
  ASSERT_EQ(pair.take_left().size(), 1u);
  EXPECT_EQ(pair.right.recv_bytes(3), (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_TRUE(pair.bench.log.empty());
}

TEST(AddressVector, LeadsBackToTheSameDevice) {
  PairOptions options;
  options.same_device = true;
  Pair pair(options);
  pair.right.post_recv({.wr_id = 1, .sges = {pair.right.recv_sge(8)}});
  pair.left.post_send({.wr_id = 2, .sges = {pair.left.send_sge(3)}});
  EXPECT_EQ(pair.take_right().size(), 1u);
  EXPECT_EQ(pair.take_left().size(), 1u);
}

// Annex A17.4.1: the UDP source port of a flow. The expected ports are those in rxe's captures. In
// the capture of rping, the port depends on the flow label, which rdma_cm made from its own ports.
// In that of rc_send, there is no flow label, so the port depends on the QP numbers 32 and 33.
TEST(AddressVector, TheUdpSourcePortIsOfTheFlowLabelOrOfTheQps) {
  const auto port = [](uint32_t flow_label) {
    const engine::FabricConfig config = engine::default_fabric(1);
    const engine::Objects objects(config);
    abi::AhAttr attr = address_vector(kSecond);
    attr.flow_label = flow_label;
    return resolve_path(objects, DeviceIndex{0}, attr, engine::QpNumber{32}, engine::QpNumber{33})
        .udp_src_port;
  };
  EXPECT_EQ(port(0x0594b), 55626);
  EXPECT_EQ(port(0), 50208);
}

TEST(AddressVector, CanBeOfAQpThatTalksToItself) {
  Bench bench(engine::default_fabric(1));
  Endpoint app(bench, ClientId{1}, DeviceIndex{0}, {});
  ASSERT_TRUE(bring_up(app.client, app.qpn, QpState::kRts, {},
                       address_vector(wire::IpAddress::from_v4(127, 0, 0, 1)), app.qpn));
  app.post_recv({.wr_id = 1, .sges = {app.recv_sge(8)}});
  app.post_send({.wr_id = 2, .sges = {app.send_sge(8)}});
  const auto done = completions_of(bench.log, ClientId{1});
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].wr_id, 1u);
  EXPECT_EQ(done[1].wr_id, 2u);
}

}  // namespace
}  // namespace rocemu::test
