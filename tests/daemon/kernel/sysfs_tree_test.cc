// Tests the files that libibverbs and other programs read, at the paths where the kernel has them.
#include "emulator/daemon/kernel/sysfs_tree.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace rocemu::daemon {
namespace {

using Tree = std::map<std::string, SysfsFile>;

std::vector<SysfsDevice> two_devices() {
  SysfsDevice device{
      "rocemu0", {wire::IpAddress::from_v4(127, 0, 0, 1), *wire::parse_ip_address("::1")}, {}, {}};
  device.attr.node_guid = 0x0200'00ff'fe00'0001;
  std::strcpy(device.attr.fw_ver, "1.2.3");
  device.port.state = 4;
  device.port.phys_state = 5;
  device.port.active_width = 2;
  device.port.active_speed = 32;
  device.port.pkey_tbl_len = 1;
  device.port.gid_tbl_len = engine::kGidTableLength;
  device.port.link_layer = static_cast<uint8_t>(abi::LinkLayer::kEthernet);
  device.netdevs = {"lo", "eth7"};
  SysfsDevice second = device;
  second.name = "other";
  second.index = 1;
  second.netdevs = {"lo", "lo"};
  return {device, second};
}

Tree tree_of(const options::Topology& topology) {
  const SysfsTree sysfs(topology, 2, {});
  Tree tree;
  for (SysfsFile& file : sysfs.files(two_devices())) {
    const std::string path = file.path;
    EXPECT_TRUE(tree.emplace(path, std::move(file)).second) << path << " comes twice";
  }
  return tree;
}

/// Returns the target of the link at that path, as the kernel resolves it.
std::string resolved(const Tree& tree, const std::string& path) {
  const auto found = tree.find(path);
  if (found == tree.end() || !found->second.is_link) return "no link: " + path;
  std::string result = path.substr(0, path.rfind('/'));
  std::string_view rest = found->second.content;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find('/'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (part == "..") {
      const size_t slash = result.rfind('/');
      result.erase(slash == std::string::npos ? 0 : slash);
    } else {
      result.append(result.empty() ? "" : "/").append(part);
    }
  }
  return result;
}

constexpr char kFirst[] = "devices/pciace0:00/ace0:00:00.0/ace0:01:00.0";
constexpr char kSecond[] = "devices/pciace0:00/ace0:00:00.1/ace0:02:00.0";

TEST(SysfsTree, HasWhatDiscoveryReads) {
  Tree tree = tree_of({});
  const std::string verbs = std::string(kSecond) + "/infiniband_verbs/uverbs1";
  const std::string device = std::string(kFirst) + "/infiniband/rocemu0";
  EXPECT_EQ(tree["class/infiniband_verbs/abi_version"].content, "6\n");
  EXPECT_EQ(tree[verbs + "/ibdev"].content, "other\n");
  EXPECT_EQ(tree[verbs + "/dev"].content, "231:193\n");
  EXPECT_EQ(tree[verbs + "/abi_version"].content, "1\n");
  EXPECT_EQ(tree[device + "/node_type"].content, "1: CA\n");
  EXPECT_EQ(tree[device + "/node_guid"].content, "0200:00ff:fe00:0001\n");
  EXPECT_EQ(tree[device + "/hca_type"].content, "rocemu\n");
  EXPECT_EQ(tree[device + "/fw_ver"].content, "1.2.3\n");
  EXPECT_EQ(tree["class/misc/rdma_cm/abi_version"].content, "4\n");
}

TEST(SysfsTree, EntriesOfClassesAreLinksToPciFunctions) {
  const Tree tree = tree_of({});
  const std::string first = kFirst, second = kSecond;
  EXPECT_EQ(tree.at("class/infiniband/rocemu0").content, "../../" + first + "/infiniband/rocemu0");
  EXPECT_EQ(resolved(tree, "class/infiniband/other"), second + "/infiniband/other");
  EXPECT_EQ(resolved(tree, "class/infiniband_verbs/uverbs1"), second + "/infiniband_verbs/uverbs1");
  EXPECT_EQ(resolved(tree, "class/infiniband_mad/umad0"), first + "/infiniband_mad/umad0");
  EXPECT_EQ(resolved(tree, "class/net/eth7"), first + "/net/eth7");
  EXPECT_EQ(tree.count("class/net/lo"), 0u) << "is nobody's";
  EXPECT_EQ(resolved(tree, "class/pci_bus/ace0:01"),
            "devices/pciace0:00/ace0:00:00.0/pci_bus/ace0:01");
  EXPECT_EQ(resolved(tree, "bus/pci/devices/ace0:01:00.0"), first);
  EXPECT_EQ(tree.at(first + "/infiniband/rocemu0/device").content, "../../../ace0:01:00.0");
  EXPECT_EQ(resolved(tree, first + "/net/eth7/device"), first);
  EXPECT_EQ(resolved(tree, first + "/subsystem"), "bus/pci");
}

TEST(SysfsTree, APciFunctionSaysWhatItIs) {
  Tree tree = tree_of({});
  const std::string first = kFirst;
  EXPECT_EQ(tree[first + "/class"].content, "0x020000\n");
  EXPECT_EQ(tree[first + "/numa_node"].content, "-1\n");
  EXPECT_NE(tree[first + "/local_cpus"].content.find_first_of("1371f"), std::string::npos);
  EXPECT_EQ(tree[first + "/vendor"].content, "0x1b36\n");
  const std::string& config = tree[first + "/config"].content;
  ASSERT_EQ(config.size(), 256u);
  EXPECT_EQ(config.substr(0, 2), "\x36\x1b");
  EXPECT_EQ(config.substr(9, 3), std::string("\0\0\2", 3));
  const std::string& bridge = tree["devices/pciace0:00/ace0:00:00.1/config"].content;
  EXPECT_EQ(bridge[0x0e], 1);
  EXPECT_EQ(bridge[0x19], 2) << "the secondary bus";
}

TEST(SysfsTree, AFlatOneIsAsRxes) {
  Tree tree = tree_of({.is_flat = true, .nodes = {}});
  EXPECT_EQ(resolved(tree, "class/infiniband/rocemu0"), "devices/virtual/infiniband/rocemu0");
  EXPECT_EQ(resolved(tree, "class/infiniband_verbs/uverbs0"),
            "devices/virtual/infiniband_verbs/uverbs0");
  EXPECT_EQ(tree["devices/virtual/infiniband/rocemu0/parent"].content, "eth7\n");
  for (const auto& [path, file] : tree) {
    EXPECT_EQ(path.find("pci"), std::string::npos) << path;
    EXPECT_NE(path.substr(path.rfind('/') + 1), "device") << path;
  }
}

TEST(SysfsTree, DescribesThePort) {
  Tree tree = tree_of({});
  const std::string port = std::string(kFirst) + "/infiniband/rocemu0/ports/1/";
  EXPECT_EQ(tree[port + "state"].content, "4: ACTIVE\n");
  EXPECT_EQ(tree[port + "phys_state"].content, "5: LinkUp\n");
  EXPECT_EQ(tree[port + "rate"].content, "100 Gb/sec (4X EDR)\n");
  EXPECT_EQ(tree[port + "link_layer"].content, "Ethernet\n");
  EXPECT_EQ(tree[port + "pkeys/0"].content, "0xffff\n");
  EXPECT_FALSE(tree.contains(port + "pkeys/1"));
  EXPECT_EQ(tree[port + "counters/port_rcv_data"].content, "0\n");
  EXPECT_EQ(tree[port + "hw_counters/sent_pkts"].content, "0\n");
}

// Linux, drivers/infiniband/core/sysfs.c: reading the attributes of an empty entry fails with
// EINVAL.
TEST(SysfsTree, HasEveryEntryOfTheGidTable) {
  Tree tree = tree_of({});
  const std::string port = std::string(kFirst) + "/infiniband/rocemu0/ports/1/";
  for (uint32_t i = 0; i < engine::kGidTableLength; ++i) {
    const std::string n = std::to_string(i);
    EXPECT_TRUE(tree.contains(port + "gids/" + n));
    const SysfsFile& type = tree[port + "gid_attrs/types/" + n];
    EXPECT_EQ(type.is_link, i >= 2);
    if (i < 2) {
      EXPECT_EQ(type.content, "RoCE v2\n");
    }
  }
  EXPECT_EQ(tree[port + "gids/0"].content, "0000:0000:0000:0000:0000:ffff:7f00:0001\n");
  EXPECT_EQ(tree[port + "gids/1"].content, "0000:0000:0000:0000:0000:0000:0000:0001\n");
  EXPECT_EQ(tree[port + "gids/2"].content, "0000:0000:0000:0000:0000:0000:0000:0000\n");
  EXPECT_EQ(tree[port + "gid_attrs/ndevs/0"].content, "lo\n");
  EXPECT_EQ(tree[port + "gid_attrs/ndevs/1"].content, "eth7\n");
}

TEST(SysfsTree, CountersHaveTheDriversNames) {
  const SysfsTree sysfs({}, 2, {});
  std::map<std::string, std::string> values;
  engine::Counters counters;
  counters.add(engine::Counter::kFramesOut, 7);
  counters.add(engine::Counter::kBytesOut, 403);
  counters.add(engine::Counter::kMulticastFramesOut, 2);
  counters.add(engine::Counter::kRnrNaksSent, 3);
  counters.add(engine::Counter::kDroppedNoReceive, 4);
  for (const SysfsFile& file : sysfs.counter_files("other", 1, counters, std::nullopt)) {
    values[file.path] = file.content;
  }
  const std::string port = std::string(kSecond) + "/infiniband/other/ports/1/";
  EXPECT_EQ(values[port + "counters/port_xmit_packets"], "7\n");
  EXPECT_EQ(values[port + "counters/port_xmit_data"], "100\n") << "of 4 bytes";
  EXPECT_EQ(values[port + "counters/unicast_xmit_packets"], "5\n");
  EXPECT_EQ(values[port + "counters/multicast_xmit_packets"], "2\n");
  EXPECT_EQ(values[port + "hw_counters/sent_pkts"], "7\n");
  EXPECT_EQ(values[port + "hw_counters/out_of_buffer"], "7\n");
  EXPECT_FALSE(values.contains(port + "hw_counters/rx_prio3_pause"));
}

TEST(SysfsTree, CountsPausesOfAPortInASimulatedNetwork) {
  const SysfsTree sysfs({}, 2, {});
  engine::PauseCounters pauses;
  pauses.received[3] = 5;
  pauses.sent[6] = 7;
  std::map<std::string, std::string> values;
  for (const SysfsFile& file : sysfs.counter_files("other", 1, {}, pauses))
    values[file.path] = file.content;
  const std::string directory = std::string(kSecond) + "/infiniband/other/ports/1/hw_counters/";
  EXPECT_EQ(values[directory + "rx_prio3_pause"], "5\n");
  EXPECT_EQ(values[directory + "tx_prio3_pause"], "0\n");
  EXPECT_EQ(values[directory + "tx_prio6_pause"], "7\n");
}

}  // namespace
}  // namespace rocemu::daemon
