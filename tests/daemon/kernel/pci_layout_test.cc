// Tests the PCI functions of topologies, and the files in sysfs that describe them.
#include "emulator/daemon/kernel/pci_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/kernel/sysfs_pci.h"

namespace rocemu::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kTwoNodes[] = R"(nodes:
- node: 0
  switches:
  - rails: [{device: a}, {device: b, addresses: [10.0.0.1, "fd00::1"]}]
- node: 1
  cpus: 1,3-4
  switches:
  - rails: [{device: c, interface: eth0}]
  - rails: [{device: d}]
)";

MachineCpus four_cpus() {
  return {{0, 1, 2, 3}, [](int) { return std::vector<unsigned>(); }};
}

std::string error_of(const std::string& yaml) {
  try {
    options::parse_topology(yaml, "f");
  } catch (const options::TopologyError& error) {
    return error.what();
  }
  return "";
}

TEST(PciLayout, ByDefaultEachDeviceIsBelowARootPort) {
  const PciLayout layout = make_pci_layout({}, 9, four_cpus());
  ASSERT_THAT(layout.devices, SizeIs(9));
  EXPECT_EQ(layout.devices[0].path, "devices/pciace0:00/ace0:00:00.0/ace0:01:00.0");
  EXPECT_EQ(layout.devices[8].path, "devices/pciace0:00/ace0:00:01.0/ace0:09:00.0");
  EXPECT_EQ(layout.devices[8].numa_node, -1);
  EXPECT_THAT(layout.devices[8].cpus, ElementsAre(0u, 1u, 2u, 3u));
  EXPECT_THAT(make_pci_layout({}, 250, four_cpus()).devices, SizeIs(250));
  EXPECT_THAT(make_pci_layout({.is_flat = true, .nodes = {}}, 9, four_cpus()).devices, SizeIs(0));
}

TEST(PciLayout, DevicesOfAFileAreBelowItsSwitches) {
  const options::Topology topology = options::parse_topology(kTwoNodes, "f");
  const PciLayout layout = make_pci_layout(topology, 4, four_cpus());
  ASSERT_THAT(layout.devices, SizeIs(4));
  const auto path = [&](size_t i) { return layout.devices[i].path; };
  EXPECT_EQ(path(0), "devices/pciace0:00/ace0:00:00.0/ace0:01:00.0/ace0:02:00.0/ace0:03:00.0");
  EXPECT_EQ(path(1), "devices/pciace0:00/ace0:00:00.0/ace0:01:00.0/ace0:02:01.0/ace0:04:00.0");
  EXPECT_EQ(path(2), "devices/pciace0:05/ace0:05:00.0/ace0:06:00.0/ace0:07:00.0/ace0:08:00.0");
  EXPECT_EQ(path(3), "devices/pciace0:05/ace0:05:01.0/ace0:09:00.0/ace0:0a:00.0/ace0:0b:00.0");
  EXPECT_EQ(layout.devices[1].numa_node, 0);
  EXPECT_EQ(layout.devices[2].numa_node, 1);
  EXPECT_THAT(layout.devices[1].cpus, ElementsAre(0u, 1u)) << "half of the machine's";
  EXPECT_THAT(layout.devices[2].cpus, ElementsAre(1u, 3u, 4u)) << "as the file says";
  const PciFunction& root_port = layout.bridges[0];
  EXPECT_EQ(root_port.address, "ace0:00:00.0");
  EXPECT_EQ(root_port.secondary, 1);
  EXPECT_EQ(root_port.subordinate, 4) << "all that is behind it";
}

TEST(PciLayout, HasTheMachinesProcessorsIfTheMachineHasAllNodes) {
  options::Topology topology = options::parse_topology(kTwoNodes, "f");
  topology.nodes[1].cpus.clear();
  const MachineCpus cpus{
      {0, 1, 2, 3}, [](int node) {
        return node == 0 ? std::vector<unsigned>{0, 2} : std::vector<unsigned>{1, 3};
      }};
  const PciLayout layout = make_pci_layout(topology, 4, cpus);
  EXPECT_THAT(layout.devices[0].cpus, ElementsAre(0u, 2u));
  EXPECT_THAT(layout.devices[3].cpus, ElementsAre(1u, 3u));
}

TEST(PciLayout, SaysThatThereAreTooFewBuses) {
  options::Topology topology;
  topology.nodes.resize(1);
  topology.nodes[0].switches.resize(8, {std::vector<options::Rail>(31)});
  EXPECT_THROW(make_pci_layout(topology, 248, four_cpus()), StartError);
}

TEST(Topology, RailsAreDevicesInTheOrderOfTheFile) {
  const std::vector<options::Rail> rails = options::parse_topology(kTwoNodes, "f").rails();
  ASSERT_THAT(rails, SizeIs(4));
  EXPECT_EQ(rails[1].device, "b");
  EXPECT_EQ(wire::to_string(rails[1].addresses.at(1)), "fd00::1");
  EXPECT_EQ(rails[2].interface, "eth0");
}

TEST(Topology, ReportsErrorsWithTheirPlaces) {
  EXPECT_THAT(error_of("nodes: []"), HasSubstr("f:1: 'nodes' must be a non-empty list"));
  EXPECT_THAT(error_of("a"), HasSubstr("f: a topology must be a mapping with the key 'nodes'"));
  EXPECT_THAT(error_of("nodes:\n- node: 0\n  swiches: []"),
              HasSubstr("f:3: a node has no key 'swiches'; its keys are node, cpus, switches"));
  EXPECT_THAT(error_of("nodes:\n- node: -1\n"), HasSubstr("its number from 0 to 1023"));
  EXPECT_THAT(error_of("nodes:\n- node: 0\n"), HasSubstr("'switches' is missing here"));
  EXPECT_THAT(error_of("nodes: [{node: 0, cpus: 3-1, switches: [{rails: [{device: a}]}]}]"),
              HasSubstr("'3-1' is not a list of processors"));
  EXPECT_THAT(error_of("nodes: [{node: 0, switches: [{rails: [{name: a}]}]}]"),
              HasSubstr("a rail has no key 'name'; its keys are device"));
  EXPECT_THAT(error_of("nodes: [{node: 0, switches: [{rails: [{addresses: [::1]}]}]}]"),
              HasSubstr("a rail needs a 'device'"));
  EXPECT_THAT(error_of("nodes: [{node: 0, switches: [{rails: [{device: a, addresses: [x]}]}]}]"),
              HasSubstr("this is not an IPv4 or IPv6 address"));
  EXPECT_THAT(error_of("nodes: ["), HasSubstr("f:1"));
  EXPECT_THROW(options::read_topology("no-such"), options::TopologyError);
}

TEST(CpuTexts, AreAsTheKernelWritesThem) {
  EXPECT_EQ(cpu_mask_text({0, 1}, 2), "3");
  EXPECT_EQ(cpu_mask_text({0, 33}, 34), "2,00000001");
  EXPECT_EQ(cpu_mask_text({0}, 8), "01");
  EXPECT_EQ(cpu_list_text({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
  EXPECT_EQ(cpu_list_text({}), "");
  EXPECT_EQ(*options::parse_cpu_list("0-2,5"), (std::vector<unsigned>{0, 1, 2, 5}));
  for (const char* wrong : {"", "a", "1-", "2-1", "0,", "99999"}) {
    EXPECT_FALSE(options::parse_cpu_list(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace rocemu::daemon
