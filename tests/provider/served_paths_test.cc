#include "verbs_provider/shim/served_paths.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "emulator/abi/hidden_devices.h"
#include "emulator/abi/runtime_dir.h"
#include "tests/provider/fake_daemon.h"

namespace rocemu::shim {
namespace {

TEST(ServedPaths, AreTheClassDirectoriesAndDevicesOfRdma) {
  for (const char* path : {
           "/sys/class/infiniband",
           "/sys/class/infiniband/",
           "/sys/class/infiniband/rocemu0/ports/1/gids/0",
           "/sys/class/infiniband_verbs/uverbs0/dev",
           "/sys/class/infiniband_mad/abi_version",
           "/sys/class/infiniband_cm",
           "/sys/class/misc/rdma_cm/abi_version",
           "/dev/infiniband",
           "/dev/infiniband/uverbs0",
           "/dev/infiniband/rdma_cm",
           "//sys/class/infiniband/rocemu0",
           "sys/class/infiniband/rocemu0",
           "/sys/devices/pciace0:00/ace0:00:00.0",
           "/sys/devices/virtual/infiniband/rocemu0",
           "/sys/devices/virtual/infiniband_verbs/uverbs0",
           "/sys/class/pci_bus/ace0:01",
           "/sys/bus/pci/devices",
           "/sys/bus/pci/devices/ace0:01:00.0/class",
           "/sys/class/net/eth0",
           "/sys/devices/pci0000:e1/0000:e1:00.0/infiniband/mlx5_0",
           "/sys/class/net/eth9/device/infiniband_verbs",
           "/sys//class/./infiniband",
           "/dev/./infiniband/uverbs0",
           "/dev/char/231:192",
       }) {
    EXPECT_NE(served_name(path), nullptr) << path;
  }
}

TEST(ServedPaths, ExcludeOtherPaths) {
  for (const char* path : {
           "",
           "/",
           "/sys",
           "/sys/class",
           "/sys/class/infiniban",
           "/sys/class/infinibandit",
           "/sys/class/misc/rdma_cmd",
           "/sys/class/net",
           "/sys/class/net/",
           "/sys/class/networks/lo",
           "/sys/devices",
           "/sys/devices/pci0000:00/0000:00:01.0",
           "/sys/devices/virtual/net/lo",
           "/sys/class/pci_bus/0000:00",
           "/sys/bus/pci",
           "/dev/infinibands",
           "/dev/char/10:1",
           "/dev/shm/infiniband",
           "/sys/module/x/infinibandit",
           "/sys/module/xinfiniband",
           "/dev/infiniband_verbs",
           "/dev/null",
           "/tmp/sys/class/infiniband",
           "./sys/class/infiniband",
       }) {
    EXPECT_EQ(served_name(path), nullptr) << path;
  }
  EXPECT_EQ(served_name(nullptr), nullptr);
}

TEST(ServedPaths, NameEndsOfThePathWithoutItsLeadingSlashes) {
  EXPECT_STREQ(served_name("//dev/infiniband/uverbs0"), "dev/infiniband/uverbs0");
}

TEST(ServedPaths, LieBelowTheRuntimeDirectory) {
  const test::FakeDaemon daemon;
  const test::ScopedVariable variable(abi::kDirVariable, (daemon.dir() + "//").c_str());
  char mapped[kMaxPath];
  ASSERT_TRUE(map_path(AT_FDCWD, "/sys/class/infiniband/rocemu0/node_guid", mapped));
  EXPECT_EQ(mapped, daemon.dir() + "/sys/class/infiniband/rocemu0/node_guid");
  EXPECT_FALSE(map_path(AT_FDCWD, "/sys/class/net", mapped));
}

// The shim maps the paths of the PCI functions and of the network interfaces to the daemon's files
// only if the daemon has such files.
TEST(ServedPaths, OfTheMachineAreTheMachinesUnlessTheDaemonHasThem) {
  const test::FakeDaemon daemon;
  const test::ScopedVariable variable(abi::kDirVariable, daemon.dir().c_str());
  char mapped[kMaxPath];
  EXPECT_FALSE(map_path(AT_FDCWD, "/sys/class/net/eth0/mtu", mapped));
  EXPECT_FALSE(map_path(AT_FDCWD, "/sys/bus/pci/devices", mapped));
  std::filesystem::create_directories(daemon.dir() + "/sys/class/net/eth0");
  std::filesystem::create_directories(daemon.dir() + "/sys/bus/pci/devices");
  EXPECT_TRUE(map_path(AT_FDCWD, "/sys/class/net/eth0/mtu", mapped));
  EXPECT_EQ(mapped, daemon.dir() + "/sys/class/net/eth0/mtu");
  EXPECT_TRUE(map_path(AT_FDCWD, "/sys/class/net/eth0", mapped));
  EXPECT_FALSE(map_path(AT_FDCWD, "/sys/class/net/eth1/mtu", mapped));
  EXPECT_TRUE(map_path(AT_FDCWD, "/sys/bus/pci/devices", mapped));
  EXPECT_FALSE(map_path(AT_FDCWD, "/sys/bus/pci/devices/0000:00:01.0", mapped)) << "none is here";
  std::filesystem::remove_all(daemon.dir() + "/sys");
}

// The directories of the machine's own devices are served as an empty directory. With
// --keep-real-devices, the daemon does not have this directory.
TEST(ServedPaths, OfTheMachinesDevicesAreHidden) {
  const test::FakeDaemon daemon;
  const test::ScopedVariable variable(abi::kDirVariable, daemon.dir().c_str());
  const std::string hidden = daemon.dir() + "/" + abi::kHiddenDir;
  const char* const device = "/sys/devices/pci0000:e1/0000:e1:00.0/infiniband/mlx5_0/node_guid";
  char mapped[kMaxPath];
  EXPECT_FALSE(map_path(AT_FDCWD, device, mapped));
  EXPECT_FALSE(map_path(AT_FDCWD, "/dev/char/231:192", mapped));
  std::filesystem::create_directory(hidden);
  ASSERT_TRUE(map_path(AT_FDCWD, device, mapped));
  EXPECT_EQ(mapped, hidden + "/mlx5_0/node_guid");
  ASSERT_TRUE(map_path(AT_FDCWD, "/sys/class/net/eth9/device/infiniband", mapped));
  EXPECT_EQ(mapped, hidden);
  ASSERT_TRUE(map_path(AT_FDCWD, "/sys/bus/pci/devices/0000:e1:00.0/infiniband_verbs/", mapped));
  EXPECT_EQ(mapped, hidden + "/");
  ASSERT_TRUE(map_path(AT_FDCWD, "/dev/char/231:192", mapped));
  EXPECT_EQ(mapped, hidden + "/231:192");
  // If the daemon has an interface, the interface belongs to one of its devices.
  std::filesystem::create_directories(daemon.dir() + "/sys/class/net/eth0");
  ASSERT_TRUE(map_path(AT_FDCWD, "/sys/class/net/eth0/device/infiniband", mapped));
  EXPECT_EQ(mapped, daemon.dir() + "/sys/class/net/eth0/device/infiniband");
  std::filesystem::remove_all(daemon.dir() + "/sys");
  std::filesystem::remove(hidden);
}

TEST(ServedPaths, HaveOneSlashBetweenComponents) {
  const test::FakeDaemon daemon;
  const test::ScopedVariable variable(abi::kDirVariable, daemon.dir().c_str());
  char mapped[kMaxPath];
  ASSERT_TRUE(map_path(AT_FDCWD, "//sys//class/./infiniband///rocemu0/", mapped));
  EXPECT_EQ(mapped, daemon.dir() + "/sys/class/infiniband/rocemu0/");
  ASSERT_TRUE(map_path(AT_FDCWD, "/dev/./infiniband//uverbs0", mapped));
  EXPECT_EQ(mapped, daemon.device());
}

TEST(ServedPaths, MayBeRelativeToADirectoryAboveThem) {
  const test::FakeDaemon daemon;
  const test::ScopedVariable variable(abi::kDirVariable, daemon.dir().c_str());
  char mapped[kMaxPath];
  const int class_dir = open("/sys/class", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(class_dir, 0);
  ASSERT_TRUE(map_path(class_dir, "infiniband/rocemu0", mapped));
  EXPECT_EQ(mapped, daemon.dir() + "/sys/class/infiniband/rocemu0");
  ASSERT_TRUE(map_path(class_dir, "./infiniband", mapped));
  EXPECT_EQ(mapped, daemon.dir() + "/sys/class/infiniband");
  EXPECT_FALSE(map_path(class_dir, "net", mapped));
  EXPECT_TRUE(may_be_served("infiniband"));
  EXPECT_FALSE(may_be_served("net/lo"));
  EXPECT_FALSE(may_be_served("/tmp/infiniband"));
  close(class_dir);
}

TEST(ServedPaths, AreNotMappedWithoutADaemon) {
  const test::ScopedVariable variable(abi::kDirVariable, "/nonexistent");
  char mapped[kMaxPath];
  EXPECT_FALSE(map_path(AT_FDCWD, "/sys/class/infiniband", mapped));
}

TEST(ServedPaths, MayBeRelativeToTheRootDirectoryOnly) {
  const test::FakeDaemon daemon;
  const test::ScopedVariable variable(abi::kDirVariable, daemon.dir().c_str());
  char mapped[kMaxPath];
  const int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int other = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  EXPECT_TRUE(map_path(root, "dev/infiniband/uverbs0", mapped));
  EXPECT_EQ(mapped, daemon.device());
  EXPECT_FALSE(map_path(other, "dev/infiniband/uverbs0", mapped));
  EXPECT_FALSE(map_path(-1, "dev/infiniband/uverbs0", mapped));
  close(root);
  close(other);
}

TEST(ServedPaths, ThatAreTooLongAreNotMapped) {
  const test::FakeDaemon daemon;
  const test::ScopedVariable variable(abi::kDirVariable, daemon.dir().c_str());
  char mapped[kMaxPath];
  const std::string path = "/sys/class/infiniband/" + std::string(kMaxPath, 'x');
  EXPECT_FALSE(map_path(AT_FDCWD, path.c_str(), mapped));
}

TEST(ServedPaths, AreFoundAgainInPlacesBelowTheDirectory) {
  EXPECT_STREQ(unmapped_name("/run/d", "/run/d/sys/class/infiniband/a"), "/sys/class/infiniband/a");
  EXPECT_EQ(unmapped_name("/run/d", "/run/d/sys/devices/a"), nullptr);
  EXPECT_EQ(unmapped_name("/run/d", "/run/dd/sys/class/infiniband/a"), nullptr);
  EXPECT_EQ(unmapped_name("/run/d", "/sys/class/infiniband/a"), nullptr);
}

}  // namespace
}  // namespace rocemu::shim
