// The `rocemud` executable: see daemon_main.cc.
#include "emulator/daemon/daemon_main.h"

int main(int argc, char** argv) {
  return rocemu::daemon::daemon_main(argc, argv);
}
