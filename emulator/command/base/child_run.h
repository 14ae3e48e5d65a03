// Runs another `rocemu run`, for commands that run the user's command several times.
#pragma once

#include <functional>
#include <string>

#include "emulator/command/base/subcommand.h"

namespace rocemu::command {

struct ChildOutput {
  std::string output, errors;  // the names of files to create; both may name the same file
};

/// Runs rocemu with these arguments ("rocemu", "run", ...) and empty standard input. Calls
/// `prepare` in the child before that. Returns the child's exit status, or 128 plus the number of
/// the signal that killed it. If a signal would end this process, sends SIGTERM to the child, waits
/// for its end, and throws Error with that signal's exit status.
int run_child(Arguments arguments, const ChildOutput& files,
              const std::function<void()>& prepare = {});

}  // namespace rocemu::command
