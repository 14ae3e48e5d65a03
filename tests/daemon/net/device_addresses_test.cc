// Tests the addresses of devices that are not attached to a network.
#include "emulator/daemon/net/device_addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/daemon/base/start_error.h"

namespace rocemu::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

NetworkInterface interface(const char* name, std::vector<const char*> addresses) {
  NetworkInterface interface;
  interface.name = name;
  for (const char* address : addresses) {
    interface.addresses.push_back({*wire::parse_ip_address(address), 24});
  }
  return interface;
}

std::vector<std::string> texts(const engine::DeviceConfig& device) {
  std::vector<std::string> texts;
  for (const wire::IpAddress& address : device.addresses) texts.push_back(wire::to_string(address));
  return texts;
}

class DeviceAddresses : public testing::Test {
 protected:
  void choose(const AddressSource& source) { choose_addresses(devices, source, interfaces); }
  std::string error_of(const AddressSource& source) {
    try {
      choose(source);
    } catch (const StartError& error) {
      return error.what();
    }
    return "";
  }

  std::vector<engine::DeviceConfig> devices = engine::default_fabric(2).devices;
  std::vector<NetworkInterface> interfaces = {
      interface("lo", {"127.0.0.1", "127.0.0.2", "::1"}),
      interface("eth0", {"fe80::5", "fd00::5", "10.0.0.5"}),
      interface("eth1", {"10.0.1.5"}),
      interface("eth2", {}),
  };
};

TEST_F(DeviceAddresses, TheFirstHasThoseOfTheMachineThatNoDeviceHas) {
  choose({.interfaces = {}, .first_has_machines = true});
  EXPECT_THAT(texts(devices[0]), ElementsAre("127.0.0.1", "::1", "127.0.1.1", "10.0.0.5",
                                             "10.0.1.5", "fd00::5", "fe80::5"));
  EXPECT_THAT(texts(devices[1]), ElementsAre("127.0.0.2", testing::_));
}

TEST_F(DeviceAddresses, ADeviceOnAnInterfaceHasAllItsAddresses) {
  choose({.interfaces = {"", "eth0"}, .first_has_machines = true});
  EXPECT_THAT(texts(devices[0]),
              ElementsAre("127.0.0.1", "::1", "127.0.1.1", "127.0.0.2", "10.0.1.5"));
  EXPECT_THAT(texts(devices[1]), ElementsAre("10.0.0.5", "fd00::5", "fe80::5"));
}

TEST_F(DeviceAddresses, AGidTableHasRoomForSomeOnly) {
  std::vector<std::string> many(20);
  for (size_t i = 0; i < many.size(); ++i) {
    many[i] = "10.1.0." + std::to_string(i);
    interfaces.push_back(interface("many", {many[i].c_str()}));
  }
  choose({.interfaces = {}, .first_has_machines = true});
  EXPECT_THAT(devices[0].addresses, SizeIs(engine::kGidTableLength));
}

TEST_F(DeviceAddresses, ReportsErrors) {
  EXPECT_THAT(
      error_of({.interfaces = {"eth9", ""}}),
      HasSubstr("device rocemu0: there is no network interface 'eth9'; there are lo, eth0, eth1"));
  EXPECT_THAT(error_of({.interfaces = {"eth2", ""}}),
              HasSubstr("device rocemu0: the interface eth2 has no IP address"));
  EXPECT_THAT(error_of({.interfaces = {"eth0", "eth0"}}),
              HasSubstr("device rocemu1: rocemu0 has the address 10.0.0.5 already"));
}

}  // namespace
}  // namespace rocemu::daemon
