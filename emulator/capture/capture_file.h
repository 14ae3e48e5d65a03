// What a capture is written to: a file, a FIFO that somebody reads, or a descriptor of this
// process.
#pragma once

#include <string>

#include "emulator/os/unique_fd.h"

namespace rocemu::capture {

struct CaptureFile {
  std::string name;  // as it was given, for messages
  UniqueFd fd;
  int descriptor = -1;  // that it names: 1 for "-"
  std::string error;    // why there is no fd; with the name
};

/// Creates the file, or empties it. "-", /dev/stdout and /dev/fd/N are descriptors that are open
/// already. Waits shortly for the reader of a FIFO, which may be starting at the same time.
CaptureFile open_capture_file(const std::string& name);

}  // namespace rocemu::capture
