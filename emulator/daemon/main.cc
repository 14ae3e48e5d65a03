// The executable `rocemud`. daemon_main.cc has its code.
#include "emulator/daemon/daemon_main.h"

int main(int argc, char** argv) {
  return rocemu::daemon::daemon_main(argc, argv);
}
