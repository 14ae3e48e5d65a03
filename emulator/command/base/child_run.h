// Another `rocemu run`, started by a command that runs the user's command several times.
#pragma once

#include <functional>
#include <string>

#include "emulator/command/base/subcommand.h"

namespace rocemu::command {

struct ChildOutput {
  std::string output, errors;  // files that are made anew; both may be the same one
};

/// Runs rocemu with these arguments ("rocemu", "run", ...) and empty standard input, and returns
/// its exit status, or 128 and the signal. `prepare` is called in the child. A signal that ends us
/// is passed on, and then is an Error with the exit status of that signal.
int run_child(Arguments arguments, const ChildOutput& files,
              const std::function<void()>& prepare = {});

}  // namespace rocemu::command
