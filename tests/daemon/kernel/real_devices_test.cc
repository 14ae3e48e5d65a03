#include "emulator/daemon/kernel/real_devices.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/daemon/temp_dir.h"

namespace rocemu::daemon {
namespace {
namespace fs = std::filesystem;

TEST(RealDevices, AreThoseOfTheClassesWithTheirNumbers) {
  const TempDir machine;
  const fs::path root = machine / "machine";
  const fs::path function = root / "sys/devices/pci0000:00/0000:00:02.0";
  for (const char* entry :
       {"infiniband/mlx5_0", "infiniband_verbs/uverbs4", "infiniband_mad/umad11"}) {
    const fs::path place = function / entry;
    fs::create_directories(place);
    const fs::path one_class = root / "sys/class" / place.parent_path().filename();
    fs::create_directories(one_class);
    fs::create_symlink(place, one_class / place.filename());
  }
  std::ofstream(root / "sys/class/infiniband_verbs/abi_version") << "6\n";
  fs::create_directories(root / "sys/class/net");
  fs::create_directories(root / "dev/infiniband");
  for (const char* node : {"uverbs4", "umad11", "rdma_cm"})
    std::ofstream(root / "dev/infiniband" / node);

  const RealDevices found = find_real_devices(root);
  EXPECT_EQ(found.names, std::vector<std::string>{"mlx5_0"});
  EXPECT_EQ(found.first_free_number, 12u) << "umad11 is the highest";
  EXPECT_EQ(found.nodes, (std::vector<std::string>{"umad11", "uverbs4"}));
  ASSERT_EQ(found.links.size(), 3u);
  EXPECT_EQ(found.links[0].path, "class/infiniband/mlx5_0");
  EXPECT_TRUE(found.links[0].is_link);
  EXPECT_EQ(found.links[0].content, fs::canonical(function / "infiniband/mlx5_0"));
}

TEST(RealDevices, AreNoneOnAMachineWithout) {
  const TempDir machine;
  const RealDevices found = find_real_devices(machine / "none");
  EXPECT_TRUE(found.names.empty() && found.links.empty() && found.nodes.empty());
  EXPECT_EQ(found.first_free_number, 0u);
}

}  // namespace
}  // namespace rocemu::daemon
