#include "emulator/command/programs/mount_sysfs.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <system_error>

#include "emulator/abi/hidden_devices.h"
#include "emulator/abi/runtime_dir.h"
#include "emulator/command/programs/refuse_netlink.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::command {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::generic_category().message(errno));
}

void write_file(const char* path, const std::string& text) {
  const UniqueFd fd(open(path, O_WRONLY | O_CLOEXEC));
  if (!fd || write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    fail(std::string("cannot write ") + path);
}

/// Makes this process's mounts invisible to other processes. If the process may not mount, it
/// enters a user namespace in which it may.
void enter_namespace() {
  if (unshare(CLONE_NEWNS) != 0) {
    const uid_t uid = geteuid();
    const gid_t gid = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) fail("no user namespace can be made");
    write_file("/proc/self/setgroups", "deny");
    write_file("/proc/self/uid_map", std::to_string(uid) + " " + std::to_string(uid) + " 1\n");
    write_file("/proc/self/gid_map", std::to_string(gid) + " " + std::to_string(gid) + " 1\n");
  }
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    fail("mounts cannot be made private");
}

void bind(const fs::path& from, const fs::path& to) {
  if (mount(from.c_str(), to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    fail("cannot mount " + to.string());
}

/// Makes the file or directory `from` appear at `to`, which does not exist yet.
void put(const fs::directory_entry& from, const fs::path& to) {
  if (from.is_symlink()) {
    fs::create_symlink(fs::read_symlink(from.path()), to);
  } else if (from.is_directory()) {
    fs::create_directory(to);
    bind(from.path(), to);
  } else {
    std::ofstream(to).close();
    bind(from.path(), to);
  }
}

bool is_rdma_class(const fs::path& path) {
  return path.filename().string().starts_with("infiniband");
}

bool is_real_directory(const fs::path& path) {
  return fs::is_directory(fs::symlink_status(path));
}

/// Fills the directory `to` with the entries of the machine's directory `machine`, and with those
/// of the NIC's directory `nic`, which replace entries of the same name. A class of RDMA devices
/// gets only the NIC's entries.
void merge(const fs::path& machine, const fs::path& nic, const fs::path& to) {
  for (const fs::directory_entry& entry : fs::directory_iterator(machine)) {
    const fs::path name = entry.path().filename();
    const fs::path ours = nic / name;
    if (!fs::exists(fs::symlink_status(ours))) {
      put(entry, to / name);
    } else if (is_real_directory(ours) && is_real_directory(entry.path()) && !is_rdma_class(ours)) {
      fs::create_directory(to / name);
      merge(entry.path(), ours, to / name);
    } else {
      put(fs::directory_entry(ours), to / name);
    }
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(nic)) {
    const fs::path name = entry.path().filename();
    if (!fs::exists(fs::symlink_status(to / name))) put(entry, to / name);
  }
}

void mount_empty(const fs::path& where) {
  if (mount("none", where.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "mode=755") != 0)
    fail("cannot mount on " + where.string());
}

/// Returns the directories of the machine's RDMA devices below /sys/devices. The classes in
/// `machine`, which is /sys, have links to them.
std::set<fs::path> directories_of_devices(const fs::path& machine) {
  std::set<fs::path> found;
  for (const fs::directory_entry& one_class : fs::directory_iterator(machine / "class")) {
    if (!is_rdma_class(one_class.path())) continue;
    const fs::path directory = fs::path("/sys/class") / one_class.path().filename();
    for (const fs::directory_entry& entry : fs::directory_iterator(one_class.path())) {
      if (!entry.is_symlink()) continue;
      const fs::path device = (directory / fs::read_symlink(entry.path())).lexically_normal();
      if (is_rdma_class(device.parent_path())) found.insert(device.parent_path());
    }
  }
  return found;
}

/// Hides the machine's RDMA devices, whose directories are `directories`, from programs that do not
/// find devices by the classes in sysfs, but by a PCI function, a file in /dev, or netlink.
void hide_real_devices(const std::set<fs::path>& directories, const std::string& nic_dir) {
  for (const fs::path& directory : directories) {
    // Inside another run, such a directory can belong to a device of the outer NIC, and the inner
    // NIC has a device in it, too.
    const bool is_nics = fs::exists(nic_dir + directory.string());
    if (!is_nics && fs::exists(directory)) mount_empty(directory);
  }
  const std::string devices = std::string("/") + abi::kDeviceDir;
  if (fs::exists(devices)) bind(nic_dir + devices, devices);
  if (!directories.empty()) refuse_rdma_netlink();
}

}  // namespace

std::string mount_sysfs(const std::string& nic_dir) {
  try {
    enter_namespace();
    const UniqueFd machine(open("/sys", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!machine) fail("cannot open /sys");
    if (mount("none", "/sys", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") != 0)
      fail("cannot mount a file system on /sys");
    const fs::path machine_sys = "/proc/self/fd/" + std::to_string(machine.get());
    merge(machine_sys, nic_dir + "/" + abi::kSysDir, "/sys");
    // With --keep-real-devices, the daemon does not create the directory kHiddenDir.
    if (fs::exists(nic_dir + "/" + abi::kHiddenDir))
      hide_real_devices(directories_of_devices(machine_sys), nic_dir);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string obstacle_to_mounts() {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return "no pipe can be made";
  const UniqueFd reader(pipe_ends[0]);
  UniqueFd writer(pipe_ends[1]);
  const pid_t child = fork();
  if (child < 0) return "no process can be started";
  if (child == 0) {
    std::string obstacle;
    try {
      enter_namespace();
      if (mount("none", "/sys", "tmpfs", 0, nullptr) != 0) fail("cannot mount on /sys");
    } catch (const std::exception& error) {
      obstacle = error.what();
    }
    const ssize_t written = write(writer.get(), obstacle.data(), obstacle.size());
    _exit(written < 0 ? 1 : 0);
  }
  writer.reset();
  std::string obstacle;
  char buffer[256];
  for (ssize_t size; (size = read(reader.get(), buffer, sizeof buffer)) > 0;)
    obstacle.append(buffer, static_cast<size_t>(size));
  waitpid(child, nullptr, 0);
  return obstacle;
}

}  // namespace rocemu::command
