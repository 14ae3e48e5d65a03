#include "emulator/os/standard_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

namespace rocemu {

void occupy_closed_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // open(2) returns the lowest number that is free
    open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
  }
}

}  // namespace rocemu
