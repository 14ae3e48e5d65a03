#include "emulator/command/sanitizer/shared_sanitizer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "emulator/command/base/error.h"
#include "emulator/command/daemons/default_runtime_dir.h"
#include "emulator/command/sanitizer/sanitizer_reports.h"

namespace rocemu::command {
namespace {

/// Returns the path of the directory of findings. It is next to the NIC's own directory, which is
/// removed when the NIC ends.
std::string shared_sanitizer_dir() {
  return shared_dir() + ".sanitizer";
}

}  // namespace

std::string make_shared_sanitizer(const SanitizerOptions& options) {
  remove_shared_sanitizer();
  std::string directory = shared_sanitizer_dir();
  if (mkdir(directory.c_str(), 0700) != 0) fail_with_errno("cannot make " + directory, errno);
  options.write(directory);
  return directory;
}

void remove_shared_sanitizer() {
  std::error_code ignored;
  std::filesystem::remove_all(shared_sanitizer_dir(), ignored);
}

bool finish_shared_sanitizer() {
  const std::string directory = shared_sanitizer_dir();
  if (access(directory.c_str(), F_OK) != 0) return false;
  const bool failed = SanitizerReports(directory).finish();
  remove_shared_sanitizer();
  return failed;
}

std::string sanitizer_directory_of(ControlClient& nic) {
  try {
    return nic.request("sanitizer").at("directory").get<std::string>();
  } catch (const Failure&) {
    return "";
  }
}

}  // namespace rocemu::command
