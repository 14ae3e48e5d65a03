// Another `rocemu run`, started by a command that runs the user's command several times.
#pragma once

#include <functional>
#include <string>

#include "emulator/command/base/subcommand.h"

namespace rocemu::command {

struct ChildOutput {
  std::string output, errors;  // the names of files to create; both may name the same file
};

/// Runs rocemu with these arguments ("rocemu", "run", ...) and empty standard input. Returns its
/// exit status, or 128 plus the number of the signal that killed it. Calls `prepare` in the child.
/// Passes a signal that would end this process on to the child, and then throws Error with that
/// signal's exit status.
int run_child(Arguments arguments, const ChildOutput& files,
              const std::function<void()>& prepare = {});

}  // namespace rocemu::command
