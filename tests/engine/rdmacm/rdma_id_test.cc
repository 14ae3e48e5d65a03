// Tests the operations on rdma_cm ids that need no peer: addresses, ports, options and groups. Also
// tests requests that are refused.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>

#include "tests/support/event_channel.h"

namespace rocemu::test {
namespace {

using namespace std::chrono_literals;
using abi::ucma::Command;
using abi::ucma::EventType;
using abi::ucma::PortSpace;
using engine::cm::Family;
using engine::cm::SocketAddress;

constexpr uint64_t kUid = 0x1234'5678'9abc'def0;

class RdmaIds : public testing::Test {
 protected:
  int set_option(uint32_t id, abi::ucma::IdOption name, int value) {
    struct {
      abi::ucma::SetOption option;
      int value;
    } in{{0, id, abi::ucma::OptionLevel::kId, static_cast<uint32_t>(name), sizeof value}, value};
    static_assert(sizeof in == sizeof in.option + 8);
    return channel
        .command(Command::kSetOption,
                 std::as_bytes(std::span(&in, 1)).first(sizeof in.option + sizeof value))
        .error;
  }
  int set_byte(uint32_t id, abi::ucma::IdOption name, uint8_t value) {
    std::array<std::byte, sizeof(abi::ucma::SetOption) + 1> in;
    const abi::ucma::SetOption option{0, id, abi::ucma::OptionLevel::kId,
                                      static_cast<uint32_t>(name), 1};
    std::memcpy(in.data(), &option, sizeof option);
    in.back() = std::byte{value};
    return channel.command(Command::kSetOption, in).error;
  }

  /// Returns a new id that is bound to that port of 127.0.0.1.
  uint32_t bound(uint16_t port, bool reuse_address) {
    const uint32_t id = channel.create_id(kUid);
    if (reuse_address) {
      EXPECT_EQ(set_option(id, abi::ucma::IdOption::kReuseAddress, 1), 0);
    }
    EXPECT_EQ(channel.bind(id, ip("127.0.0.1", port)), 0);
    return id;
  }

  CmBench bench;
  EventChannel channel{bench, 1};
};

// ---- Ids --------------------------------------------------------------------------------------

TEST_F(RdmaIds, AnIdIsUnknownAfterItsDestruction) {
  const uint32_t id = channel.create_id(kUid);
  EXPECT_EQ(channel.destroy_id(id), 0);
  EXPECT_EQ(channel.destroy_id(id), ENOENT);
  EXPECT_EQ(channel.bind(id, ip("127.0.0.1")), ENOENT);
}

TEST_F(RdmaIds, AnIdOfAnotherChannelIsRefused) {
  EventChannel other(bench, 2);
  const uint32_t id = channel.create_id(kUid);
  EXPECT_EQ(other.bind(id, ip("127.0.0.1")), EINVAL);
  EXPECT_EQ(other.destroy_id(id), EINVAL);
}

TEST_F(RdmaIds, AMigratedIdBelongsToTheNewChannel) {
  EventChannel other(bench, 2);
  const uint32_t id = channel.create_id(kUid);
  EXPECT_EQ(other.ask(Command::kMigrateId, abi::ucma::MigrateId{0, id, channel.number().value}), 0);
  EXPECT_EQ(channel.resolve(id, ip("127.0.0.1", 7471)), EINVAL);
  EXPECT_EQ(other.resolve(id, ip("127.0.0.1", 7471)), 0);
  EXPECT_EQ(other.next_event().event, EventType::kAddrResolved);
}

TEST_F(RdmaIds, ClosingAChannelFreesThePortsOfItsIds) {
  EventChannel other(bench, 2);
  EXPECT_EQ(other.bind(other.create_id(kUid), ip("127.0.0.1", 7471)), 0);
  const uint32_t id = channel.create_id(kUid);
  EXPECT_EQ(channel.bind(id, ip("127.0.0.1", 7471)), EADDRINUSE);
  other.close();
  EXPECT_EQ(channel.bind(id, ip("127.0.0.1", 7471)), 0);
}

TEST_F(RdmaIds, APortSpaceThatDoesNotExistIsRefused) {
  abi::ucma::CreateId in{};
  in.port_space = static_cast<PortSpace>(0x0107);
  EXPECT_EQ(channel.ask(Command::kCreateId, in), EINVAL);
}

// ---- Commands of the wrong form ---------------------------------------------------------------

TEST_F(RdmaIds, ShortCommandsAreRefusedWhateverTheyAre) {
  for (uint32_t number = 0; number < abi::ucma::kCommands; ++number) {
    const std::byte one{};
    const int error = channel.command(static_cast<Command>(number), std::span(&one, 1)).error;
    const bool none = number == static_cast<uint32_t>(Command::kGetOption);
    EXPECT_EQ(error, none ? ENOSYS : EINVAL) << number;
  }
  EXPECT_EQ(channel.command(static_cast<Command>(99), {}).error, EINVAL);
}

TEST_F(RdmaIds, AResponseWithoutRoomIsRefusedBeforeAnythingHappens) {
  abi::ucma::CreateId in{};
  in.port_space = PortSpace::kTcp;
  const auto bytes = std::as_bytes(std::span(&in, 1));
  EXPECT_EQ(channel.command(Command::kCreateId, bytes, 3).error, ENOSPC);
  const uint32_t id = channel.create_id(kUid);
  const abi::ucma::DestroyId destroy{0, id, 0};
  EXPECT_EQ(channel.command(Command::kDestroyId, std::as_bytes(std::span(&destroy, 1)), 3).error,
            ENOSPC);
  EXPECT_EQ(channel.destroy_id(id), 0);
}

TEST_F(RdmaIds, AnOlderProgramsShorterResponseIsFilledAsFarAsItGoes) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.bind(id, ip("127.0.0.1", 7471)), 0);
  const abi::ucma::Query in{0, id, {}};
  const auto bytes = std::as_bytes(std::span(&in, 1));
  constexpr uint32_t kOlder = offsetof(abi::ucma::QueryRouteResponse, ibdev_index);
  EXPECT_EQ(channel.command(Command::kQueryRoute, bytes, kOlder).response.size(), kOlder);
  EXPECT_EQ(channel.command(Command::kQueryRoute, bytes, kOlder - 1).error, ENOSPC);
}

// ---- Binding ----------------------------------------------------------------------------------

TEST_F(RdmaIds, ABoundAddressGivesTheDevice) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.bind(id, ip("127.0.0.2", 7471)), 0);
  const auto addresses = channel.addresses(id);
  EXPECT_EQ(__builtin_bswap64(addresses.node_guid),
            engine::node_guid(engine::default_fabric(2).devices[1]));
  EXPECT_EQ(addresses.port, 1);
  EXPECT_EQ(channel.source(id).port, 7471);
}

TEST_F(RdmaIds, AWildcardGivesNoDevice) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.bind(id, ip("0.0.0.0", 7471)), 0);
  EXPECT_EQ(channel.addresses(id).node_guid, 0u);
}

TEST_F(RdmaIds, AnUnusedAddressCannotBeBound) {
  const uint32_t id = channel.create_id(kUid);
  EXPECT_EQ(channel.bind(id, ip("10.0.0.1")), EADDRNOTAVAIL);
  EXPECT_EQ(channel.bind(id, ip("127.0.0.1")), 0) << "a failure leaves it unbound";
  EXPECT_EQ(channel.bind(id, ip("127.0.0.1")), EINVAL) << "bound twice";
}

// Linux, drivers/infiniband/core/cma.c: cma_any_addr() is also true for loopback addresses, so an
// id can be bound to one that no device has.
TEST_F(RdmaIds, AnUnusedLoopbackAddressIsAWildcard) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.bind(id, ip("127.0.0.9", 7471)), 0);
  EXPECT_EQ(channel.addresses(id).node_guid, 0u);
  EXPECT_EQ(channel.source(id), ip("127.0.0.9", 7471));
  EXPECT_EQ(channel.bind(channel.create_id(kUid), ip("127.0.0.1", 7471)), EADDRNOTAVAIL);
  EXPECT_EQ(channel.bind(channel.create_id(kUid), ip("127.0.0.8", 7471)), EADDRNOTAVAIL);
  ASSERT_EQ(channel.resolve(id, ip("127.0.0.2", 7472)), 0);
  EXPECT_EQ(channel.source(id), ip("127.0.0.1", 7471)) << "once it is known";
  EXPECT_EQ(channel.bind(channel.create_id(kUid), ip("127.0.0.2", 7471)), 0);
}

TEST_F(RdmaIds, ALoopbackAddressOfADeviceBelongsToItOnly) {
  ASSERT_EQ(channel.bind(channel.create_id(kUid), ip("::1", 7471)), 0);
  EXPECT_EQ(channel.bind(channel.create_id(kUid), ip("127.0.0.2", 7471)), 0);
}

TEST_F(RdmaIds, ALinkLocalAddressNeedsAScope) {
  SocketAddress address;
  address.family = Family::kIpv6;
  address.address = engine::default_fabric(2).devices[1].addresses[1];
  const uint32_t id = channel.create_id(kUid);
  EXPECT_EQ(channel.bind(id, address), EINVAL);
  address.scope = 1;
  EXPECT_EQ(channel.bind(id, address), 0);
}

TEST_F(RdmaIds, PortZeroChoosesAnUnusedOneEachTime) {
  const uint32_t a = channel.create_id(kUid), b = channel.create_id(kUid);
  ASSERT_EQ(channel.bind(a, ip("127.0.0.1")), 0);
  ASSERT_EQ(channel.bind(b, ip("127.0.0.1")), 0);
  EXPECT_GE(channel.source(a).port, 32768);
  EXPECT_NE(channel.source(a).port, channel.source(b).port);
}

TEST_F(RdmaIds, APortBelongsToOneAddress) {
  ASSERT_EQ(channel.bind(channel.create_id(kUid), ip("127.0.0.1", 7471)), 0);
  EXPECT_EQ(channel.bind(channel.create_id(kUid), ip("127.0.0.1", 7471)), EADDRINUSE);
  EXPECT_EQ(channel.bind(channel.create_id(kUid), ip("0.0.0.0", 7471)), EADDRNOTAVAIL);
  EXPECT_EQ(channel.bind(channel.create_id(kUid), ip("127.0.0.2", 7471)), 0);
}

TEST_F(RdmaIds, EachPortSpaceHasItsOwnPorts) {
  ASSERT_EQ(channel.bind(channel.create_id(kUid), ip("127.0.0.1", 7471)), 0);
  EXPECT_EQ(channel.bind(channel.create_id(kUid, PortSpace::kUdp), ip("127.0.0.1", 7471)), 0);
}

TEST_F(RdmaIds, BothFamiliesShareAPortUnlessEachWantsItsOwnOnly) {
  ASSERT_EQ(channel.bind(channel.create_id(kUid), ip("0.0.0.0", 7471)), 0);
  EXPECT_EQ(channel.bind(channel.create_id(kUid), ip("::", 7471)), EADDRNOTAVAIL);
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(set_option(id, abi::ucma::IdOption::kAddressFamilyOnly, 1), 0);
  EXPECT_EQ(channel.bind(id, ip("::", 7471)), 0);
}

// Linux's cma_check_port() decides about a second id on a port by whether each id has REUSEADDR and
// whether the first one listens. "Once the ID reaches RDMA_CM_LISTEN it is not allowed to be
// reusable any more, and has to be unique in the bind list" (rdma_listen()).
TEST_F(RdmaIds, ASecondIdOnAPortNeedsReuseAddressOfBothAndNoListener) {
  uint16_t port = 7000;
  for (const bool first : {false, true}) {
    for (const bool second : {false, true}) {
      for (const bool listens : {false, true}) {
        ++port;
        const uint32_t a = bound(port, first);
        if (listens) {
          ASSERT_EQ(channel.listen(a), 0);
        }
        const uint32_t b = channel.create_id(kUid);
        if (second) {
          ASSERT_EQ(set_option(b, abi::ucma::IdOption::kReuseAddress, 1), 0);
        }
        EXPECT_EQ(channel.bind(b, ip("127.0.0.1", port)),
                  first && second && !listens ? 0 : EADDRINUSE)
            << first << second << listens;
        const uint32_t elsewhere = channel.create_id(kUid);
        EXPECT_EQ(channel.bind(elsewhere, ip("127.0.0.2", port)), 0) << "another address";
      }
    }
  }
}

TEST_F(RdmaIds, AWildcardOnAPortWithAListenerIsRefusedWithReuseAddressToo) {
  const uint32_t a = bound(7471, true);
  ASSERT_EQ(channel.listen(a), 0);
  const uint32_t b = channel.create_id(kUid);
  ASSERT_EQ(set_option(b, abi::ucma::IdOption::kReuseAddress, 1), 0);
  EXPECT_EQ(channel.bind(b, ip("0.0.0.0", 7471)), EADDRNOTAVAIL);
}

TEST_F(RdmaIds, TheLastOfTwoIdsOnAPortMayListenAndThenHasItAlone) {
  const uint32_t a = bound(7471, true), b = bound(7471, true);
  EXPECT_EQ(channel.listen(a), EADDRINUSE);
  EXPECT_EQ(channel.listen(b), EADDRINUSE);
  ASSERT_EQ(channel.destroy_id(a), 0);
  ASSERT_EQ(channel.listen(b), 0);
  const uint32_t c = channel.create_id(kUid);
  ASSERT_EQ(set_option(c, abi::ucma::IdOption::kReuseAddress, 1), 0);
  EXPECT_EQ(channel.bind(c, ip("127.0.0.1", 7471)), EADDRINUSE);
  EXPECT_EQ(set_option(b, abi::ucma::IdOption::kReuseAddress, 1), EINVAL) << "it listens";
  ASSERT_EQ(channel.destroy_id(b), 0);
  EXPECT_EQ(channel.bind(c, ip("127.0.0.1", 7471)), 0);
}

TEST_F(RdmaIds, AnAfIbAddressIsBoundByItsGid) {
  // When a process first uses librdmacm, the library tries to bind an id to this address.
  SocketAddress address;
  address.family = Family::kIb;
  address.address = *wire::parse_ip_address("::1");
  address.service = 0x0000'0000'0106'0000;
  address.service_mask = 0xffff'ffff'ffff'0000;
  const uint32_t id = channel.create_id(kUid, PortSpace::kIb);
  EXPECT_EQ(channel.bind(id, address), 0);
  EXPECT_GE(channel.source(id).port, 32768);
  EXPECT_EQ(channel.source(id).service_mask, ~uint64_t{0});
}

TEST_F(RdmaIds, AServiceIdOfNoPortSpaceIsRefused) {
  SocketAddress address = ip("127.0.0.1");
  address.family = Family::kIb;
  address.service = 0x4242'0000;
  address.service_mask = ~uint64_t{0};
  EXPECT_EQ(channel.bind(channel.create_id(kUid, PortSpace::kIb), address), EPROTONOSUPPORT);
}

// ---- Resolution -------------------------------------------------------------------------------

TEST_F(RdmaIds, AResolvedAddressHasASourceAndADevice) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.resolve(id, ip("127.0.0.2", 7471)), 0);
  const auto event = channel.next_event();
  EXPECT_EQ(event.event, EventType::kAddrResolved);
  EXPECT_EQ(event.uid, kUid);
  EXPECT_EQ(event.id, id);
  EXPECT_EQ(event.status, 0u);
  EXPECT_EQ(channel.source(id).address, ip("127.0.0.1").address);
  EXPECT_GE(channel.source(id).port, 32768);
  EXPECT_EQ(channel.destination(id), ip("127.0.0.2", 7471));
}

// ARP's request travels to the host and its reply back (RFC 826).
TEST(Resolution, TakesOneRoundTripOfTheLink) {
  engine::FabricConfig config = engine::default_fabric(2);
  config.link_latency = 3us;
  CmBench bench(config);
  EventChannel channel{bench, 1};
  for (const char* destination : {"127.0.0.2", "127.0.0.1", "0.0.0.0", "239.1.2.3"}) {
    const uint32_t id = channel.create_id(kUid);
    ASSERT_EQ(channel.resolve(id, ip(destination, 7471)), 0) << destination;
    bench.run_for(6us - 1ns);
    EXPECT_TRUE(bench.events.empty()) << destination;
    bench.run_for(1ns);
    EXPECT_EQ(channel.next_event().event, EventType::kAddrResolved) << destination;
  }
}

TEST(Resolution, ReportsNothingForAnIdThatIsDestroyedMeanwhile) {
  engine::FabricConfig config = engine::default_fabric(2);
  config.link_latency = 3us;
  CmBench bench(config);
  EventChannel channel{bench, 1};
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.resolve(id, ip("127.0.0.2", 7471)), 0);
  EXPECT_EQ(channel.resolve(id, ip("127.0.0.2", 7471)), EINVAL);
  bench.run_for(5us);
  EXPECT_EQ(channel.destroy_id(id), 0);
  bench.run_for(1s);
  EXPECT_TRUE(bench.events.empty());
}

TEST_F(RdmaIds, TheSourceOfIpv6IsTheAddressMostLikeTheDestination) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.resolve(id, ip("::1", 7471)), 0);
  EXPECT_EQ(channel.source(id).address, ip("::1").address);
}

TEST_F(RdmaIds, TheWildcardAsDestinationMeansTheFirstDevice) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.resolve(id, ip("0.0.0.0", 7471)), 0);
  EXPECT_EQ(channel.next_event().event, EventType::kAddrResolved);
  EXPECT_EQ(channel.destination(id).address, ip("127.0.0.1").address);
}

TEST_F(RdmaIds, AnUnusedLoopbackAddressAsDestinationMeansTheFirstDevice) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.resolve(id, ip("127.0.5.5", 7471)), 0);
  EXPECT_EQ(channel.next_event().event, EventType::kAddrResolved);
  EXPECT_EQ(channel.destination(id), ip("127.0.0.1", 7471));
}

TEST(RdmaIdsOnAnInterface, AnUnusedLoopbackAddressMeansTheFirstDevice) {
  engine::FabricConfig config = engine::default_fabric(1);
  config.devices[0].addresses = {*wire::parse_ip_address("10.0.0.1")};
  for (const bool outside : {false, true}) {
    config.devices[0].outside = outside;
    CmBench bench(config);
    EventChannel channel(bench, 1);
    const uint32_t id = channel.create_id(kUid);
    ASSERT_EQ(channel.resolve(id, ip("127.0.0.1", 7471)), 0);
    EXPECT_EQ(channel.next_event().event, EventType::kAddrResolved);
    EXPECT_EQ(channel.destination(id), ip("10.0.0.1", 7471));
  }
}

TEST(RdmaIdsOnAnInterface, AnotherLoopbackAddressMayExistOnTheLoopbackInterface) {
  engine::FabricConfig config = engine::default_fabric(1);
  config.devices[0].outside = true;
  CmBench bench(config);
  EventChannel channel(bench, 1);
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.resolve(id, ip("127.0.0.2", 7471)), 0);
  EXPECT_EQ(channel.next_event().event, EventType::kAddrResolved);
  EXPECT_EQ(channel.destination(id), ip("127.0.0.2", 7471));
}

TEST_F(RdmaIds, ABoundIdKeepsItsSource) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.bind(id, ip("127.0.0.2")), 0);
  ASSERT_EQ(channel.resolve(id, ip("127.0.0.1", 7471)), 0);
  EXPECT_EQ(channel.source(id).address, ip("127.0.0.2").address);
}

TEST_F(RdmaIds, AnUnusedAddressIsAnErrorAfterTheTimeout) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.resolve(id, ip("10.0.0.1", 7471), 2000), 0);
  bench.run_for(std::chrono::milliseconds(1999));
  EXPECT_EQ(channel.next_event().id, 0u);
  bench.run_for(std::chrono::milliseconds(1));
  const auto event = channel.next_event();
  EXPECT_EQ(event.event, EventType::kAddrError);
  EXPECT_EQ(static_cast<int32_t>(event.status), -ETIMEDOUT);
  // After this error, the program may resolve an address again.
  EXPECT_EQ(channel.resolve(id, ip("127.0.0.1", 7471)), 0);
}

TEST_F(RdmaIds, AResolutionOfADestroyedIdEndsSilently) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.resolve(id, ip("10.0.0.1", 7471), 10), 0);
  ASSERT_EQ(channel.destroy_id(id), 0);
  bench.run_for(std::chrono::seconds(1));
  EXPECT_EQ(channel.next_event().id, 0u);
}

TEST_F(RdmaIds, TheFamiliesOfBothEndsAreTheSame) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.bind(id, ip("127.0.0.1")), 0);
  EXPECT_EQ(channel.resolve(id, ip("::1", 7471)), EINVAL);
}

TEST_F(RdmaIds, ARouteNeedsAnAddressAndAConnectionARoute) {
  const uint32_t id = channel.create_id(kUid);
  EXPECT_EQ(channel.resolve_route(id), EINVAL);
  ASSERT_EQ(channel.resolve(id, ip("127.0.0.2", 7471)), 0);
  EXPECT_EQ(channel.connect(id, {}), EINVAL);
  EXPECT_EQ(channel.ask(Command::kResolveRoute, abi::ucma::ResolveRoute{id, 0}), EINVAL);
  ASSERT_EQ(channel.resolve_route(id), 0);
  channel.next_event();
  EXPECT_EQ(channel.next_event().event, EventType::kRouteResolved);
  EXPECT_EQ(channel.resolve_route(id), EINVAL) << "twice";
}

TEST_F(RdmaIds, AResolvedRouteHasOnePathBetweenTheGids) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.resolve(id, ip("127.0.0.2", 7471)), 0);
  ASSERT_EQ(channel.resolve_route(id), 0);
  const auto [error, route] = channel.ask_for<abi::ucma::QueryRouteResponse>(
      Command::kQueryRoute, abi::ucma::Query{0, id, {}});
  EXPECT_EQ(error, 0);
  EXPECT_EQ(route.num_paths, 1u);
  EXPECT_EQ(std::memcmp(route.paths[0].dgid, ip("127.0.0.2").address.bytes.data(), 16), 0);
  EXPECT_EQ(std::memcmp(route.paths[0].sgid, ip("127.0.0.1").address.bytes.data(), 16), 0);
  EXPECT_EQ(route.paths[0].mtu, static_cast<uint32_t>(abi::Mtu::k4096));
}

// IBTA vol 1, 15.2.5.16: a PathRecord begins with ServiceID, DGID and SGID, of 8, 16 and 16 bytes.
// RDMA_USER_CM_QUERY_PATH returns as many records as exist.
TEST_F(RdmaIds, AQueryOfThePathsHasOneRecordAfterARouteIsResolvedAndNoneBefore) {
  const uint32_t id = channel.create_id(kUid);
  ASSERT_EQ(channel.resolve(id, ip("127.0.0.2", 7471)), 0);
  const abi::ucma::Query query{0, id, abi::ucma::QueryKind::kPath};
  const auto bytes = std::as_bytes(std::span(&query, 1));
  const engine::CmReply before = channel.command(Command::kQuery, bytes);
  EXPECT_EQ(before.error, 0);
  EXPECT_EQ(before.response, std::vector<std::byte>(8)) << "the number, 0, and what is reserved";
  ASSERT_EQ(channel.resolve_route(id), 0);
  const auto [error, after] = channel.ask_for<abi::ucma::QueryPathResponse>(Command::kQuery, query);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(after.num_paths, 1u);
  const uint8_t* const record = after.paths[0].record;
  EXPECT_EQ(std::memcmp(record + 8, ip("127.0.0.2").address.bytes.data(), 16), 0);
  EXPECT_EQ(std::memcmp(record + 24, ip("127.0.0.1").address.bytes.data(), 16), 0);
}

// ---- Options ----------------------------------------------------------------------------------

TEST_F(RdmaIds, OptionsHaveTheirSizesAndStates) {
  const uint32_t id = channel.create_id(kUid);
  EXPECT_EQ(set_byte(id, abi::ucma::IdOption::kTos, 0x20), 0);
  EXPECT_EQ(set_option(id, abi::ucma::IdOption::kTos, 0x20), EINVAL);
  EXPECT_EQ(set_byte(id, abi::ucma::IdOption::kReuseAddress, 1), EINVAL);
  EXPECT_EQ(set_byte(id, abi::ucma::IdOption::kAckTimeout, 14), 0);
  const uint32_t datagram = channel.create_id(kUid, PortSpace::kUdp);
  EXPECT_EQ(set_byte(datagram, abi::ucma::IdOption::kAckTimeout, 14), EINVAL);
  EXPECT_EQ(set_byte(id, static_cast<abi::ucma::IdOption>(77), 0), ENOSYS);
  ASSERT_EQ(channel.resolve(id, ip("127.0.0.1", 7471)), 0);
  EXPECT_EQ(set_option(id, abi::ucma::IdOption::kAddressFamilyOnly, 1), EINVAL);
}

// ---- Multicast --------------------------------------------------------------------------------

class MulticastIds : public RdmaIds {
 protected:
  std::pair<int, uint32_t> join(uint32_t id, std::string_view address, uint64_t uid = 77,
                                abi::ucma::JoinFlags flags = abi::ucma::JoinFlags::kFullMember) {
    abi::ucma::JoinMcast in{};
    in.id = id;
    in.uid = uid;
    in.flags = flags;
    in.address_size = static_cast<uint16_t>(ip(address).size());
    engine::cm::emit(ip(address), in.address.bytes);
    const auto [error, response] =
        channel.ask_for<abi::ucma::CreateIdResponse>(Command::kJoinMcast, in);
    return {error, response.id};
  }
};

TEST_F(MulticastIds, AJoinGivesTheGroupsGidAndQKeyAtOnce) {
  const uint32_t id = channel.create_id(kUid, PortSpace::kUdp);
  ASSERT_EQ(channel.bind(id, ip("127.0.0.1")), 0);
  const auto [error, group] = join(id, "239.1.2.3");
  ASSERT_EQ(error, 0);
  const auto event = channel.next_event();
  EXPECT_EQ(event.event, EventType::kMulticastJoin);
  EXPECT_EQ(event.uid, 77u);
  EXPECT_EQ(event.id, group);
  EXPECT_EQ(event.reserved, id) << "counted for the id that joined";
  EXPECT_EQ(event.param.ud.qp_num, 0xffffffu);
  EXPECT_EQ(event.param.ud.qkey, 0x01234567u);
  EXPECT_EQ(std::memcmp(event.param.ud.ah_attr.dgid, ip("239.1.2.3").address.bytes.data(), 16), 0);
}

TEST_F(MulticastIds, AnIdThatOnlySendsCanJoin) {
  const uint32_t id = channel.create_id(kUid, PortSpace::kUdp);
  ASSERT_EQ(channel.bind(id, ip("127.0.0.1")), 0);
  EXPECT_EQ(join(id, "239.1.2.3", 77, abi::ucma::JoinFlags::kSendOnlyFullMember).first, 0);
  EXPECT_EQ(join(id, "239.1.2.3", 77, static_cast<abi::ucma::JoinFlags>(2)).first, EINVAL);
}

TEST_F(MulticastIds, OnlyADatagramIdWithADeviceCanJoin) {
  const uint32_t stream = channel.create_id(kUid);
  ASSERT_EQ(channel.bind(stream, ip("127.0.0.1")), 0);
  EXPECT_EQ(join(stream, "239.1.2.3").first, EINVAL);
  const uint32_t anywhere = channel.create_id(kUid, PortSpace::kUdp);
  EXPECT_EQ(join(anywhere, "239.1.2.3").first, EINVAL);
}

TEST_F(MulticastIds, AGroupIsLeftOnceAndGoesWithItsId) {
  const uint32_t id = channel.create_id(kUid, PortSpace::kUdp);
  ASSERT_EQ(channel.resolve(id, ip("239.1.2.3")), 0) << "a group has no owner that must answer";
  const uint32_t first = join(id, "239.1.2.3").second, second = join(id, "239.1.2.4").second;
  EXPECT_EQ(channel.ask(Command::kLeaveMcast, abi::ucma::DestroyId{0, first, 0}), 0);
  EXPECT_EQ(channel.ask(Command::kLeaveMcast, abi::ucma::DestroyId{0, first, 0}), ENOENT);
  ASSERT_EQ(channel.destroy_id(id), 0);
  EXPECT_EQ(channel.ask(Command::kLeaveMcast, abi::ucma::DestroyId{0, second, 0}), ENOENT);
}

// ---- QP attributes ----------------------------------------------------------------------------

TEST_F(RdmaIds, ADatagramQpGetsPortAndQKey) {
  const uint32_t id = channel.create_id(kUid, PortSpace::kUdp);
  ASSERT_EQ(channel.bind(id, ip("127.0.0.1")), 0);
  const auto [error, attr] = channel.ask_for<abi::ucma::QpAttrResponse>(
      Command::kInitQpAttr,
      abi::ucma::InitQpAttr{0, id, static_cast<uint32_t>(abi::QpState::kInit)});
  EXPECT_EQ(error, 0);
  EXPECT_EQ(attr.qp_attr_mask,
            abi::kAttrState | abi::kAttrPkeyIndex | abi::kAttrPort | abi::kAttrQkey);
  EXPECT_EQ(attr.qkey, 0x01234567u);
  EXPECT_EQ(attr.port_num, 1);
}

TEST_F(RdmaIds, AttributesNeedADevice) {
  const uint32_t id = channel.create_id(kUid);
  EXPECT_EQ(channel.ask(Command::kInitQpAttr, abi::ucma::InitQpAttr{0, id, 1}), EINVAL);
  EXPECT_EQ(channel.ask(Command::kInitQpAttr, abi::ucma::InitQpAttr{0, id, 7}), EINVAL);
}

}  // namespace
}  // namespace rocemu::test
