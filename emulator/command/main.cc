// The `rocemu` executable: see dispatch.cc for its subcommands.
#include <cstdio>
#include <string>

#include "emulator/command/base/error.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/os/process_limits.h"
#include "emulator/os/standard_descriptors.h"

int main(int argc, char** argv) {
  rocemu::occupy_closed_standard_descriptors();
  if (const std::string stack = rocemu::too_small_stack(); !stack.empty()) {
    std::fprintf(stderr, "rocemu: no NIC can be started: %s\n", stack.c_str());
    return rocemu::command::kExitFailure;
  }
  return rocemu::command::dispatch({argv + 1, argv + argc});
}
