#include "emulator/command/doctor/device_probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "emulator/command/base/error.h"
#include "emulator/command/daemons/daemon_launch.h"
#include "emulator/command/daemons/process_exit.h"
#include "emulator/command/programs/installation.h"
#include "emulator/command/programs/program_environment.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::command {
namespace {

constexpr char kProvider[] = "provider";
constexpr char kShim[] = "shim";
constexpr char kDevice[] = "device";
constexpr char kProbeDevice[] = "rocemu_doctor";
constexpr char kOk[] = "ok: ";
constexpr char kFailed[] = "failed: ";
constexpr std::chrono::seconds kTimeout{30};

constexpr char kAgain[] =
    "install rocemu again: the package for this distribution, or the portable one";

// ---- The process that opens a device ------------------------------------------------------------

[[noreturn]] void fail_probe(const std::string& what) {
  std::printf("%s%s\n", kFailed, what.c_str());
  std::fflush(stdout);
  _exit(kExitFailure);
}

/// Returns the version of rdma-core in the file name of libibverbs: "44.0" for
/// libibverbs.so.1.14.44.0. Empty if the file name contains no version.
std::string rdma_core_version(const std::string& path) {
  const size_t at = path.find(".so.1.");
  if (at == std::string::npos) return "";
  const size_t dot = path.find('.', at + 6);
  return dot == std::string::npos ? "" : path.substr(dot + 1);
}

template <typename Function>
Function* function_of(void* library, const char* name) {
  auto* const function = reinterpret_cast<Function*>(dlsym(library, name));
  if (function == nullptr) fail_probe(std::string("libibverbs has no ") + name);
  return function;
}

/// Returns the size of ibv_port_attr in this version of rdma-core. rdma-core 49 made the struct
/// four bytes larger, but did not change the ABI number.
size_t port_attr_size(const std::string& version) {
  constexpr int kFirstWithSpeedEx = 49;
  constexpr size_t kBefore = 52, kSince = 56;
  return version.empty() || std::atoi(version.c_str()) >= kFirstWithSpeedEx ? kSince : kBefore;
}

void check_port(ibv_context* context, const std::string& version) {
  constexpr unsigned char kGuard = 0xa5;
  constexpr uint8_t kFirstPort = 1;
  const size_t size = port_attr_size(version);
  alignas(ibv_port_attr) std::array<unsigned char, 256> buffer;
  buffer.fill(kGuard);
  const verbs_context* const verbs = verbs_get_ctx_op(context, query_port);
  if (verbs == nullptr) fail_probe("libibverbs has no function to query a port");
  const int error =
      verbs->query_port(context, kFirstPort, reinterpret_cast<ibv_port_attr*>(buffer.data()), size);
  if (error != 0) fail_probe(std::string("ibv_query_port: ") + std::strerror(error));
  if (std::any_of(buffer.begin() + static_cast<ptrdiff_t>(size), buffer.end(),
                  [](unsigned char byte) { return byte != kGuard; }))
    fail_probe("layout: ibv_query_port writes past the end of the program's struct");
}

void check_queue_pair(void* library, ibv_context* context) {
  ibv_pd* const pd = function_of<ibv_pd*(ibv_context*)>(library, "ibv_alloc_pd")(context);
  if (pd == nullptr) fail_probe(std::string("ibv_alloc_pd: ") + std::strerror(errno));
  ibv_cq* const cq = function_of<ibv_cq*(ibv_context*, int, void*, ibv_comp_channel*, int)>(
      library, "ibv_create_cq")(context, 1, nullptr, nullptr, 0);
  if (cq == nullptr) fail_probe(std::string("ibv_create_cq: ") + std::strerror(errno));
  ibv_qp_init_attr_ex wanted{};
  wanted.send_cq = cq;
  wanted.recv_cq = cq;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = wanted.cap.max_recv_wr = 1;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  wanted.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  wanted.pd = pd;
  wanted.send_ops_flags = IBV_QP_EX_WITH_SEND;
  verbs_context* const verbs = verbs_get_ctx_op(context, create_qp_ex);
  ibv_qp* const qp = verbs == nullptr ? nullptr : verbs->create_qp_ex(context, &wanted);
  if (qp == nullptr) fail_probe(std::string("ibv_create_qp_ex: ") + std::strerror(errno));
  if (function_of<ibv_qp_ex*(ibv_qp*)>(library, "ibv_qp_to_qp_ex")(qp) == nullptr)
    fail_probe("layout: ibv_qp_to_qp_ex does not find the provider's extended QP");
  function_of<int(ibv_qp*)>(library, "ibv_destroy_qp")(qp);
  function_of<int(ibv_cq*)>(library, "ibv_destroy_cq")(cq);
  function_of<int(ibv_pd*)>(library, "ibv_dealloc_pd")(pd);
}

// ---- The process that starts the probe ----------------------------------------------------------

struct ProbeOutput {
  std::string out, err;
  int wait_status = 0;
  bool timed_out = false;
};

[[noreturn]] void become_probe(const std::string& dir, int out, int err) {
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  try {
    if (length <= 0) fail_with_errno("cannot read /proc/self/exe", errno);
    self[length] = '\0';
    set_program_environment(dir);
    execl(self, self, "doctor", kProbeOption, static_cast<char*>(nullptr));
    fail_with_errno("cannot start rocemu again", errno);
  } catch (const Failure& failure) {
    dprintf(STDOUT_FILENO, "%s%s\n", kFailed, failure.what());
  }
  _exit(kExitFailure);
}

/// Reads both descriptors until end of file. Returns false after kTimeout.
bool read_both(int out_fd, int err_fd, ProbeOutput& output) {
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  pollfd entries[] = {{out_fd, POLLIN, 0}, {err_fd, POLLIN, 0}};
  std::string* const texts[] = {&output.out, &output.err};
  while (entries[0].fd >= 0 || entries[1].fd >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    if (poll(entries, 2, static_cast<int>(left.count())) < 0 && errno != EINTR) return false;
    for (size_t i = 0; i < 2; ++i) {
      if (entries[i].fd < 0 || entries[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t count = read(entries[i].fd, buffer, sizeof buffer);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0)
        entries[i].fd = -1;
      else
        texts[i]->append(buffer, static_cast<size_t>(count));
    }
  }
  return true;
}

ProbeOutput run_probe(const std::string& dir) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0) fail_with_errno("cannot make a pipe", errno);
  const UniqueFd out_read(out[0]);
  UniqueFd out_write(out[1]);
  if (pipe2(err, O_CLOEXEC) != 0) fail_with_errno("cannot make a pipe", errno);
  const UniqueFd err_read(err[0]);
  UniqueFd err_write(err[1]);
  const pid_t pid = fork();
  if (pid < 0) fail_with_errno("cannot start another process", errno);
  if (pid == 0) become_probe(dir, out_write.get(), err_write.get());
  out_write.reset();
  err_write.reset();
  ProbeOutput output;
  output.timed_out = !read_both(out_read.get(), err_read.get(), output);
  if (output.timed_out) kill(pid, SIGKILL);
  while (waitpid(pid, &output.wait_status, 0) < 0 && errno == EINTR) {
  }
  return output;
}

/// Returns the line of `text` that contains `part`; empty if none does.
std::string line_with(const std::string& text, std::string_view part) {
  const size_t at = text.find(part);
  if (at == std::string::npos) return "";
  const size_t begin = text.rfind('\n', at) + 1;  // 0 if there is none, since npos + 1 is 0
  return text.substr(begin, text.find('\n', at) - begin);
}

bool is_noexec(const std::string& path) {
  struct statvfs file_system;
  return statvfs(path.c_str(), &file_system) == 0 && (file_system.f_flag & ST_NOEXEC) != 0;
}

/// Returns the remedy for an error of the dynamic linker. `reason` is why it cannot load the
/// library of rocemu at `path`.
std::string remedy_for(const std::string& reason, const std::string& path) {
  const auto has = [&](const char* part) { return reason.find(part) != std::string::npos; };
  if (has("libc.musl") || has("ld-musl"))
    return "it was built with musl; use a rocemu that was built with this C library";
  if (has("GLIBC_") || has("GLIBCXX_") || has("CXXABI_"))
    return std::string("it was built with a newer C or C++ library; ") + kAgain;
  if (has("IBVERBS_PRIVATE_") || has("IBVERBS_"))
    return std::string("it was built for another libibverbs; ") + kAgain;
  if (has("failed to map segment") && is_noexec(path))
    return "its file system is mounted noexec: mount -o remount,exec " +
           path.substr(0, path.rfind('/')) + ", or install rocemu somewhere else";
  if (has("cannot open shared object file") && !reason.starts_with(path)) {
    const std::string library = reason.substr(0, reason.find(':'));
    return "install the package that has " + library +
           ", or the portable rocemu, which brings its own";
  }
  return kAgain;
}

/// Returns the text in parentheses in the dynamic linker's warning "... cannot be preloaded
/// (REASON): ignored."
std::string preload_reason(const std::string& line) {
  const size_t begin = line.rfind(" (");
  const size_t end = line.rfind(')');
  return begin == std::string::npos || end == std::string::npos || end < begin + 2
             ? line
             : line.substr(begin + 2, end - begin - 2);
}

/// Reports libibverbs' warning that its directory with the list of providers is missing. Each
/// program prints this warning, although rocemu's provider needs no list.
Findings check_warnings(const ProbeOutput& output) {
  constexpr std::string_view kNoDirectory = "couldn't open config directory '";
  const std::string line = line_with(output.err, kNoDirectory);
  if (line.empty()) return {};
  const size_t begin = line.find(kNoDirectory) + kNoDirectory.size();
  const std::string dir = line.substr(begin, line.find('\'', begin) - begin);
  return {
      {Level::kNote, kDevice, "each program prints a warning of libibverbs: there is no " + dir,
       "mkdir " + dir + ", or install the providers of other NICs (Debian: ibverbs-providers)"}};
}

Finding explain(const ProbeOutput& output) {
  if (const std::string line = line_with(output.err, "cannot be preloaded"); !line.empty()) {
    const std::string path = shim_path();
    const std::string reason = preload_reason(line);
    return {Level::kProblem, kShim, path + " cannot be loaded: " + reason,
            remedy_for(reason, path)};
  }
  constexpr std::string_view kNoDriver = "couldn't load driver '";
  for (size_t at = output.err.find(kNoDriver); at != std::string::npos;
       at = output.err.find(kNoDriver, at + 1)) {
    const std::string line = line_with(output.err.substr(at), kNoDriver);
    const size_t colon = line.find("': ");
    if (colon == std::string::npos) continue;
    std::string path = line.substr(kNoDriver.size(), colon - kNoDriver.size());
    if (path.find("/librocemu-rdmav") == std::string::npos) continue;  // another vendor's provider
    std::string reason = line.substr(colon + 3);
    if (const std::string own = path + ": ";
        reason.starts_with(own) && reason.find("cannot open") == std::string::npos)
      reason.erase(0, own.size());
    return {Level::kProblem, kProvider, path + " cannot be loaded: " + reason,
            remedy_for(reason, path)};
  }
  // verbs_provider/base/layout.cc prints the warning that contains this text.
  if (const std::string line = line_with(output.err, " is a libibverbs that rocemu ");
      !line.empty()) {
    constexpr std::string_view kSpeaker = "rocemu: ";
    const size_t begin = line.starts_with(kSpeaker) ? kSpeaker.size() : 0;
    return {Level::kProblem, kProvider, line.substr(begin, line.find(", so ") - begin),
            "install a rocemu that knows this libibverbs"};
  }
  if (output.timed_out)
    return {Level::kProblem, kDevice, "a program that opens a device does not end",
            "report this as a bug"};
  if (const std::string line = line_with(output.out, kFailed); !line.empty()) {
    const std::string what = line.substr(std::strlen(kFailed));
    if (what.starts_with("layout: "))
      return {Level::kProblem, kProvider,
              what.substr(8) + ": the provider was built for another version of libibverbs",
              kAgain};
    return {Level::kProblem, kDevice, what, "fix this problem, or install rocemu again"};
  }
  const std::string ok = line_with(output.out, kOk);
  if (ok.empty() || output.wait_status != 0) {
    std::string last = output.err.substr(0, output.err.find_last_not_of('\n') + 1);
    last = last.substr(last.rfind('\n') + 1);
    return {Level::kProblem, kDevice,
            "a program that opens a device " + describe_wait_status(output.wait_status) +
                (last.empty() ? "" : ": " + last),
            kAgain};
  }
  return {Level::kOk, kDevice, ok.substr(std::strlen(kOk)), ""};
}

}  // namespace

int probe_device() {
  if (dlsym(RTLD_DEFAULT, "rocemu_call") == nullptr) fail_probe("the shim was not loaded");
  void* const library = dlopen("libibverbs.so.1", RTLD_NOW);
  if (library == nullptr) fail_probe(dlerror());
  link_map* map = nullptr;
  char path[PATH_MAX] = "libibverbs.so.1";
  if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && realpath(map->l_name, path) == nullptr)
    std::strcpy(path, "libibverbs.so.1");
  const std::string version = rdma_core_version(path);
  int count = 0;
  ibv_device** const devices =
      function_of<ibv_device**(int*)>(library, "ibv_get_device_list")(&count);
  const auto name_of = function_of<const char*(ibv_device*)>(library, "ibv_get_device_name");
  ibv_device* device = nullptr;
  for (int i = 0; i < count && device == nullptr; ++i)
    if (std::string_view(name_of(devices[i])) == kProbeDevice) device = devices[i];
  if (device == nullptr)
    fail_probe(std::string("libibverbs ") + version + " lists " + std::to_string(count) +
               " devices, but none of them is an emulated one");
  ibv_context* const context =
      function_of<ibv_context*(ibv_device*)>(library, "ibv_open_device")(device);
  if (context == nullptr) fail_probe(std::string("ibv_open_device: ") + std::strerror(errno));
  check_port(context, version);
  check_queue_pair(library, context);
  function_of<int(ibv_context*)>(library, "ibv_close_device")(context);
  std::printf("%sa program opens a device and uses it (libibverbs %s, %s)\n", kOk,
              version.empty() ? "of an unknown version" : version.c_str(), path);
  return 0;
}

Findings check_device() {
  try {
    PrivateDaemon daemon = PrivateDaemon::start({.arguments = {"--device", kProbeDevice}});
    const ProbeOutput output = run_probe(daemon.dir());
    daemon.stop();
    Findings findings = {explain(output)};
    if (findings[0].level == Level::kOk) {
      const Findings warnings = check_warnings(output);
      findings.insert(findings.end(), warnings.begin(), warnings.end());
    }
    return findings;
  } catch (const Failure&) {  // check_daemon() reports this
    return {};
  }
}

}  // namespace rocemu::command
