// Tests rdma_cm ids with link-local addresses, which are valid on one interface only.
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/event_channel.h"

namespace rocemu::test {
namespace {

using engine::cm::SocketAddress;

constexpr uint64_t kUid = 0x1234'5678'9abc'def0;

/// Two devices on interfaces 2 and 3, each with a link-local address.
engine::FabricConfig on_two_interfaces() {
  engine::FabricConfig config = engine::default_fabric(2);
  for (uint32_t i = 0; i < 2; ++i) {
    config.devices[i].addresses = {wire::IpAddress::from_v4(10, 0, 0, static_cast<uint8_t>(i + 1)),
                                   *wire::parse_ip_address(i == 0 ? "fe80::1" : "fe80::2")};
    config.devices[i].interfaces = {i + 2, i + 2};
  }
  return config;
}

class LinkLocalIds : public testing::Test {
 protected:
  static SocketAddress link_local(std::string_view text, uint32_t scope) {
    SocketAddress address = ip(text);
    address.scope = scope;
    return address;
  }
  int bind(const SocketAddress& address) { return channel.bind(channel.create_id(kUid), address); }
  int resolve(const SocketAddress& address) {
    return channel.resolve(channel.create_id(kUid), address);
  }

  CmBench bench{on_two_interfaces()};
  EventChannel channel{bench, 1};
};

// The errors are those of Linux: of cma_check_linklocal() if the scope is missing, of
// rdma_translate_ip() if no interface has the number, and of cma_validate_port() if the number is
// that of another interface than the GID's.
TEST_F(LinkLocalIds, AreBoundWithTheScopeOfTheirInterfaceOnly) {
  EXPECT_EQ(bind(link_local("fe80::1", 2)), 0);
  EXPECT_EQ(bind(link_local("fe80::2", 3)), 0);
  EXPECT_EQ(bind(link_local("fe80::1", 0)), EINVAL);
  EXPECT_EQ(bind(link_local("fe80::1", 9999)), ENODEV);
  EXPECT_EQ(bind(link_local("fe80::1", 3)), ENODEV);
  EXPECT_EQ(bind(link_local("fe80::2", 2)), ENODEV);
}

// No route leads through an interface that does not exist.
TEST_F(LinkLocalIds, CannotBeReachedByTheScopeOfNoInterface) {
  EXPECT_EQ(resolve(link_local("fe80::2", 9999)), ENETUNREACH);
  EXPECT_EQ(resolve(link_local("fe80::2", 3)), 0);
}

TEST_F(LinkLocalIds, OtherAddressesNeedNoScope) {
  EXPECT_EQ(bind(ip("10.0.0.1")), 0);
  EXPECT_EQ(bind(ip("::")), 0);
}

}  // namespace
}  // namespace rocemu::test
