// Opens the destination of a capture: a file, a FIFO that another program reads, or a descriptor of
// this process.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "emulator/os/unique_fd.h"

namespace rocemu::capture {

struct CaptureFile {
  std::string name;  // as the user gave it, for messages
  UniqueFd fd;
  int descriptor = -1;  // that it names: 1 for "-"
  std::string error;    // why there is no fd, with the name
};

/// The time to wait for the reader of a FIFO. In `tshark -i fifo & rocemu run --capture fifo ...`,
/// tshark needs a second to open the FIFO, and many seconds on a busy machine.
inline constexpr std::chrono::seconds kReaderPatience{20};

/// Creates or empties the file. "-", /dev/stdout and /dev/fd/N are descriptors that are already
/// open. Waits for the reader of a FIFO, which may be starting at the same time, and calls
/// `on_wait` if the reader does not open the FIFO soon.
CaptureFile open_capture_file(const std::string& name, const std::function<void()>& on_wait = {},
                              std::chrono::seconds patience = kReaderPatience);

}  // namespace rocemu::capture
