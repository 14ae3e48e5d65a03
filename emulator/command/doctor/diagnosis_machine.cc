#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include "emulator/command/base/error.h"
#include "emulator/command/daemons/control_client.h"
#include "emulator/command/daemons/daemon_launch.h"
#include "emulator/command/daemons/default_runtime_dir.h"
#include "emulator/command/doctor/device_probe.h"
#include "emulator/command/doctor/diagnosis.h"
#include "emulator/command/doctor/memory_probe.h"
#include "emulator/command/programs/installation.h"
#include "emulator/os/programs/elf_file.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::command {
namespace {

constexpr rlim_t kFewFiles = 256;

std::string text_of(int error) {
  return std::generic_category().message(error);
}

Finding check_runtime_dir(const std::string& base) {
  const char* const check = "runtime directory";
  const char* const remedy =
      "set XDG_RUNTIME_DIR to a directory that you own and whose name is short";
  const bool was_there = access(base.c_str(), F_OK) == 0;
  try {
    create_base(base);
    if (!fits_socket_address(new_private_dir(base)))
      return {Level::kProblem, check, base + " is too long for a socket address", remedy};
  } catch (const Failure& failure) {
    return {Level::kProblem, check, failure.what(), remedy};
  }
  const bool writable = access(base.c_str(), W_OK | X_OK) == 0;
  if (!was_there) remove_empty_base(base);
  if (!writable) return {Level::kProblem, check, base + " is not writable", remedy};
  return {Level::kOk, check, base, ""};
}

Finding check_daemon() {
  const char* const check = "daemon";
  try {
    PrivateDaemon daemon = PrivateDaemon::start({});
    std::optional<ControlClient> client = ControlClient::connect(daemon.dir());
    if (!client) return {Level::kProblem, check, "rocemud starts but cannot be reached", ""};
    client->require_same_version();
    const std::string trouble = daemon.stop();
    if (!trouble.empty()) return {Level::kProblem, check, trouble, "report this as a bug"};
    return {Level::kOk, check, daemon_path() + " starts, answers and ends", ""};
  } catch (const Failure& failure) {
    return {Level::kProblem, check, failure.what(), "fix this problem, or install rocemu again"};
  }
}

Finding check_shim() {
  try {
    return {Level::kOk, "shim", shim_path(), ""};
  } catch (const Failure& failure) {
    return {Level::kProblem, "shim", failure.what(), "install rocemu again"};
  }
}

Finding check_provider() {
  const char* const check = "provider";
  void* const library = dlopen("libibverbs.so.1", RTLD_LAZY);
  if (library == nullptr) {
    const std::string why = dlerror();
    const bool is_missing = why.find("cannot open shared object file") != std::string::npos;
    return {
        Level::kProblem, check,
        is_missing ? "libibverbs.so.1 is not installed"
                   : "libibverbs.so.1 cannot be loaded: " + why,
        "install it (Debian and Ubuntu: apt install libibverbs1; Fedora: dnf install libibverbs)"};
  }
  link_map* map = nullptr;
  const bool known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0;
  const std::string path = known ? map->l_name : "libibverbs.so.1";
  const int abi = private_abi_of(path);
  dlclose(library);
  if (abi == 0)
    return {Level::kProblem, check, path + " does not load provider plugins",
            "use the libibverbs of rdma-core 17 or later"};
  const std::string name = std::to_string(abi);
  const std::string provider = provider_path(abi);
  if (provider.empty())
    return {Level::kProblem, check,
            path + " has the private ABI " + name + ", for which librocemu-rdmav" + name +
                ".so is missing",
            "install a rocemu that knows this libibverbs, or build it on this machine"};
  return {Level::kOk, check, provider + " for " + path, ""};
}

/// Returns the number with which the file begins or, with `label`, the number after that label in
/// the file. Returns 0 if there is no number.
int number_in(const char* path, const std::string& label = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(label)) return std::atoi(line.c_str() + label.size());
  return 0;
}

/// A mechanism of the kernel or of a container that denies process_vm_readv: its name, and how to
/// allow the call.
struct Refuser {
  std::string name, remedy;
};

Refuser refuser_of_memory_access() {
  constexpr int kSeccompFilter = 2;  // proc(5): Seccomp in /proc/PID/status
  if (number_in("/proc/self/status", "Seccomp:") == kSeccompFilter)
    return {"a seccomp filter is in force",
            "in a container, start it with --cap-add=SYS_PTRACE, or with a seccomp profile "
            "that allows process_vm_readv and process_vm_writev"};
  if (const int scope = number_in("/proc/sys/kernel/yama/ptrace_scope"); scope != 0)
    return {"Yama's ptrace_scope is " + std::to_string(scope),
            scope == 3 ? "the setting cannot be changed until the machine is rebooted"
                       : "allow the access: sysctl kernel.yama.ptrace_scope=0"};
  return {
      "the kernel, or a security module such as SELinux or AppArmor, refuses the "
      "access",
      "in a container, start it with --cap-add=SYS_PTRACE"};
}

Finding check_memory_access() {
  const char* const check = "memory access";
  const MemoryAccess access = probe_memory_access();
  if (access.process_vm) return {Level::kOk, check, "process_vm_readv and process_vm_writev", ""};
  const auto [refuser, remedy] = refuser_of_memory_access();
  if (access.passed_mem_fd)
    return {Level::kNote, check,
            "process_vm_readv is refused (" + refuser +
                "); /proc/self/mem is used instead, which is a little slower",
            "nothing needs to be done; " + remedy};
  return {
      Level::kProblem, check,
      "neither process_vm_readv nor a passed /proc/self/mem reaches another process's memory (" +
          refuser + ")",
      "mount /proc; " + remedy};
}

Finding check_memfd() {
  const char* const check = "shared memory";
  const char* const remedy = "allow memfd_create, its seals and mmap (seccomp, kernel 3.17)";
  const UniqueFd memory(memfd_create("rocemu-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return {Level::kProblem, check, "memfd_create: " + text_of(errno), remedy};
  constexpr size_t kSize = 4096;
  if (ftruncate(memory.get(), kSize) != 0 ||
      fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return {Level::kProblem, check, "sealing a memfd: " + text_of(errno), remedy};
  void* const mapped = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED)
    return {Level::kProblem, check, "mapping a memfd: " + text_of(errno), remedy};
  munmap(mapped, kSize);
  return {Level::kOk, check, "sealed memfds", ""};
}

Finding check_open_files() {
  const char* const check = "open files";
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::string soft = std::to_string(limit.rlim_cur);
  if (limit.rlim_cur < kFewFiles)
    return {Level::kProblem, check, "a process may open only " + soft + " files",
            limit.rlim_max > kFewFiles ? "ulimit -n " + std::to_string(limit.rlim_max)
                                       : "raise the hard limit of RLIMIT_NOFILE"};
  return {Level::kOk, check, "a process may open " + soft, ""};
}

/// Finds the directories that killed daemons left behind. They are harmless, but no other program
/// removes them.
Findings check_remains() {
  Findings findings;
  for (const std::string& dir : private_dirs()) {
    bool alive = true;
    try {
      alive = ControlClient::connect(dir).has_value();
    } catch (const Failure&) {  // another process listens there
    }
    if (!alive)
      findings.push_back(
          {Level::kNote, "remains", dir + " was left by a daemon that was killed", "rm -r " + dir});
  }
  return findings;
}

}  // namespace

Findings check_machine() {
  Findings findings = {check_runtime_dir(base_dir())};
  if (private_base_dir() != base_dir()) findings.push_back(check_runtime_dir(private_base_dir()));
  for (const auto check : {check_daemon, check_shim, check_provider, check_memory_access,
                           check_memfd, check_open_files})
    findings.push_back(check());
  // If another check has found a problem, this check would only report the same problem again.
  const bool works_so_far = std::ranges::none_of(
      findings, [](const Finding& finding) { return finding.level == Level::kProblem; });
  if (works_so_far) {
    const Findings device = check_device();
    findings.insert(findings.end(), device.begin(), device.end());
  }
  const Findings remains = check_remains();
  findings.insert(findings.end(), remains.begin(), remains.end());
  return findings;
}

}  // namespace rocemu::command
