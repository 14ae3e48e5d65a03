// The files that libibverbs and others were seen to need.
#include "emulator/daemon/kernel/sysfs_tree.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

namespace rocemu::daemon {
namespace {

std::map<std::string, std::string> tree_of_two() {
  SysfsDevice device{
      "rocemu0", {wire::IpAddress::from_v4(127, 0, 0, 1), *wire::parse_ip_address("::1")}, {}, {}};
  device.attr.node_guid = 0x0200'00ff'fe00'0001;
  std::strcpy(device.attr.fw_ver, "1.2.3");
  device.port.state = 4;
  device.port.phys_state = 5;
  device.port.active_width = 2;
  device.port.active_speed = 32;
  device.port.pkey_tbl_len = 1;
  SysfsDevice second = device;
  second.name = "other";
  std::map<std::string, std::string> tree;
  for (SysfsFile& file : sysfs_files({device, second})) {
    EXPECT_TRUE(tree.emplace(file.path, file.content).second) << file.path << " comes twice";
  }
  return tree;
}

TEST(SysfsTree, HasWhatDiscoveryReads) {
  std::map<std::string, std::string> tree = tree_of_two();
  EXPECT_EQ(tree["class/infiniband_verbs/abi_version"], "6\n");
  EXPECT_EQ(tree["class/infiniband_verbs/uverbs1/ibdev"], "other\n");
  EXPECT_EQ(tree["class/infiniband_verbs/uverbs1/dev"], "231:193\n");
  EXPECT_EQ(tree["class/infiniband_verbs/uverbs1/abi_version"], "1\n");
  EXPECT_EQ(tree["class/infiniband/rocemu0/node_type"], "1: CA\n");
  EXPECT_EQ(tree["class/infiniband/rocemu0/node_guid"], "0200:00ff:fe00:0001\n");
  EXPECT_EQ(tree["class/infiniband/rocemu0/hca_type"], "rocemu\n");
  EXPECT_EQ(tree["class/infiniband/rocemu0/fw_ver"], "1.2.3\n");
  EXPECT_EQ(tree["class/misc/rdma_cm/abi_version"], "4\n");
}

TEST(SysfsTree, DescribesThePort) {
  std::map<std::string, std::string> tree = tree_of_two();
  const std::string port = "class/infiniband/rocemu0/ports/1/";
  EXPECT_EQ(tree[port + "state"], "4: ACTIVE\n");
  EXPECT_EQ(tree[port + "phys_state"], "5: LinkUp\n");
  EXPECT_EQ(tree[port + "rate"], "100 Gb/sec (4X EDR)\n");
  EXPECT_EQ(tree[port + "link_layer"], "Ethernet\n");
  EXPECT_EQ(tree[port + "pkeys/0"], "0xffff\n");
  EXPECT_FALSE(tree.contains(port + "pkeys/1"));
}

// One missing type makes ibv_query_gid_table(3) fail for the whole table.
TEST(SysfsTree, HasEveryEntryOfTheGidTable) {
  std::map<std::string, std::string> tree = tree_of_two();
  const std::string port = "class/infiniband/rocemu0/ports/1/";
  for (uint32_t i = 0; i < engine::kGidTableLength; ++i) {
    const std::string n = std::to_string(i);
    EXPECT_TRUE(tree.contains(port + "gids/" + n));
    EXPECT_EQ(tree[port + "gid_attrs/types/" + n], "RoCE v2\n");
    EXPECT_EQ(tree[port + "gid_attrs/ndevs/" + n], i < 2 ? "lo\n" : "\n");
  }
  EXPECT_EQ(tree[port + "gids/0"], "0000:0000:0000:0000:0000:ffff:7f00:0001\n");
  EXPECT_EQ(tree[port + "gids/1"], "0000:0000:0000:0000:0000:0000:0000:0001\n");
  EXPECT_EQ(tree[port + "gids/2"], "0000:0000:0000:0000:0000:0000:0000:0000\n");
}

}  // namespace
}  // namespace rocemu::daemon
