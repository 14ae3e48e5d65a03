// The `rocemu` executable: see dispatch.cc for its subcommands.
#include "emulator/command/subcommand.h"

int main(int argc, char** argv) {
  return rocemu::command::dispatch({argv + 1, argv + argc});
}
