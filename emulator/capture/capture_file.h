// What a capture is written to: a file, a FIFO that somebody reads, or a descriptor of this
// process.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "emulator/os/unique_fd.h"

namespace rocemu::capture {

struct CaptureFile {
  std::string name;  // as it was given, for messages
  UniqueFd fd;
  int descriptor = -1;  // that it names: 1 for "-"
  std::string error;    // why there is no fd; with the name
};

/// `tshark -i fifo & rocemu run --capture fifo ...`: tshark needs a second before it opens it, and
/// many on a busy machine.
inline constexpr std::chrono::seconds kReaderPatience{20};

/// Creates the file, or empties it. "-", /dev/stdout and /dev/fd/N are descriptors that are open
/// already. Waits for the reader of a FIFO, which may be starting at the same time; `on_wait` is
/// called if that does not come at once.
CaptureFile open_capture_file(const std::string& name, const std::function<void()>& on_wait = {},
                              std::chrono::seconds patience = kReaderPatience);

}  // namespace rocemu::capture
