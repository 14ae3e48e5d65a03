#include "emulator/capture/capture_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

namespace rocemu::capture {
namespace {

/// The time after which the user gets a message that the FIFO has no reader. A reader that is
/// already starting opens the FIFO earlier.
constexpr std::chrono::seconds kAtOnce{2};
constexpr std::chrono::milliseconds kReaderPoll{10};

/// Returns the file descriptor for a name such as "-" or /dev/fd/N; nothing for other names.
std::optional<int> named_descriptor(std::string_view name) {
  if (name == "-" || name == "/dev/stdout") return STDOUT_FILENO;
  if (name == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view directory : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!name.starts_with(directory)) continue;
    const char* const end = name.data() + name.size();
    int number = 0;
    const auto [stop, error] = std::from_chars(name.data() + directory.size(), end, number);
    if (error == std::errc() && stop == end && number >= 0) return number;
  }
  return std::nullopt;
}

bool is_fifo(const std::string& name) {
  struct stat status;
  return stat(name.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
}

/// Opens the file so that a FIFO without a reader is an error (ENXIO) and does not block.
UniqueFd open_now(const std::string& name) {
  return UniqueFd(
      open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666));
}

UniqueFd open_with_reader(const std::string& name, const std::function<void()>& on_wait,
                          std::chrono::seconds patience) {
  const auto since = std::chrono::steady_clock::now();
  bool told = !on_wait;
  for (;;) {
    UniqueFd fd = open_now(name);
    if (fd || errno != ENXIO || !is_fifo(name)) return fd;
    const auto waited = std::chrono::steady_clock::now() - since;
    if (waited >= patience) {
      errno = ENXIO;
      return fd;
    }
    if (waited >= kAtOnce && !std::exchange(told, true)) on_wait();
    std::this_thread::sleep_for(kReaderPoll);
  }
}

std::string reason(const CaptureFile& file, int error) {
  if (error != ENXIO || !is_fifo(file.name)) return std::strerror(error);
  return "no program reads this FIFO; start its reader first, for example tshark -i " + file.name;
}

}  // namespace

CaptureFile open_capture_file(const std::string& name, const std::function<void()>& on_wait,
                              std::chrono::seconds patience) {
  CaptureFile file{.name = name, .fd = {}, .descriptor = -1, .error = ""};
  const std::string cannot = "cannot write the capture " + name + ": ";
  if (const auto descriptor = named_descriptor(name)) {
    file.descriptor = *descriptor;
    file.fd = UniqueFd(fcntl(*descriptor, F_DUPFD_CLOEXEC, 0));
  } else {
    file.fd = open_with_reader(name, on_wait, patience);
  }
  if (!file.fd) {
    file.error = cannot + reason(file, errno);
  } else if (isatty(file.fd.get())) {
    file.fd.reset();
    file.error = cannot + "it is a terminal; pipe it to a program, for example | tshark -r -";
  }
  return file;
}

}  // namespace rocemu::capture
