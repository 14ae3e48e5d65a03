// The executable `rocemud`. daemon_main.cc has its code.
#include "emulator/daemon/daemon_main.h"
#include "emulator/os/standard_descriptors.h"

int main(int argc, char** argv) {
  rocemu::occupy_closed_standard_descriptors();
  return rocemu::daemon::daemon_main(argc, argv);
}
