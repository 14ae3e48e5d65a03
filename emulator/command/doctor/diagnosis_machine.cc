#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "emulator/command/daemons/control_client.h"
#include "emulator/command/daemons/daemon_launch.h"
#include "emulator/command/daemons/default_runtime_dir.h"
#include "emulator/command/doctor/diagnosis.h"
#include "emulator/command/doctor/elf_file.h"
#include "emulator/command/doctor/installation.h"
#include "emulator/command/doctor/memory_probe.h"
#include "emulator/command/error.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::command {
namespace {

constexpr rlim_t kFewFiles = 256;

std::string text_of(int error) {
  return std::generic_category().message(error);
}

Finding check_runtime_dir(const std::string& base) {
  const char* const check = "runtime directory";
  const char* const remedy = "set XDG_RUNTIME_DIR to a short-named directory of your own";
  const bool was_there = access(base.c_str(), F_OK) == 0;
  try {
    create_base(base);
    if (!fits_socket_address(new_private_dir(base)))
      return {Level::kProblem, check, base + " is too long a name for sockets", remedy};
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
    return {Level::kProblem, check, failure.what(), "mend what it says, or install rocemu again"};
  }
}

Finding check_shim() {
  try {
    preload_value("");
    return {Level::kOk, "shim", shim_path(), ""};
  } catch (const Failure& failure) {
    return {Level::kProblem, "shim", failure.what(), "install rocemu again"};
  }
}

Finding check_provider() {
  const char* const check = "provider";
  void* const library = dlopen("libibverbs.so.1", RTLD_LAZY);
  if (library == nullptr)
    return {Level::kProblem, check, "libibverbs.so.1 is not installed",
            "install it (Debian: apt install libibverbs1)"};
  link_map* map = nullptr;
  const bool known = dlinfo(library, RTLD_DI_LINKMAP, &map) == 0;
  const std::string path = known ? map->l_name : "libibverbs.so.1";
  const int abi = private_abi_of(path);
  dlclose(library);
  if (abi == 0)
    return {Level::kProblem, check, path + " takes no provider plugins",
            "use the libibverbs of rdma-core 17 or later"};
  const std::string name = std::to_string(abi);
  const std::string provider = provider_path(abi);
  if (provider.empty())
    return {Level::kProblem, check,
            path + " has the private ABI " + name + ", for which librocemu-rdmav" + name +
                ".so is missing",
            "build rocemu on this machine, against its libibverbs"};
  return {Level::kOk, check, provider + " for " + path, ""};
}

Finding check_memory_access() {
  const char* const check = "memory access";
  const MemoryAccess access = probe_memory_access();
  if (access.process_vm) return {Level::kOk, check, "process_vm_readv and process_vm_writev", ""};
  if (access.passed_mem_fd)
    return {Level::kNote, check,
            "process_vm_readv is refused; /proc/self/mem is used instead, which is a little slower",
            "nothing needs to be done; in a container --cap-add=SYS_PTRACE, on a machine "
            "sysctl kernel.yama.ptrace_scope=0 allows it"};
  return {Level::kProblem, check,
          "neither process_vm_readv nor a passed /proc/self/mem reaches another process's memory",
          "mount /proc; in a container allow process_vm_readv and process_vm_writev "
          "(--cap-add=SYS_PTRACE or another seccomp profile)"};
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

/// Directories of daemons that were killed: harmless, but nobody else would remove them.
Findings check_remains() {
  Findings findings;
  for (const std::string& dir : private_dirs()) {
    bool alive = true;
    try {
      alive = ControlClient::connect(dir).has_value();
    } catch (const Failure&) {  // somebody is there
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
  const Findings remains = check_remains();
  findings.insert(findings.end(), remains.begin(), remains.end());
  return findings;
}

}  // namespace rocemu::command
