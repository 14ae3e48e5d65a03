// Which of the running daemons a subcommand means.
#pragma once

#include <string>

#include "emulator/command/base/subcommand.h"
#include "emulator/command/daemons/control_client.h"

namespace rocemu::command {

/// Adds --dir.
void add_dir_option(boost::program_options::options_description& options);

/// The daemon in the directory given by --dir; else the one of the `rocemu run` we are in; else the
/// shared one; else the only one that this user runs. `invocation` is how the user would repeat
/// the subcommand with a --dir behind it. Throws Failure if there is none, or not one.
ControlClient choose_daemon(const boost::program_options::variables_map& values,
                            const std::string& invocation);

/// The above in words, for help.
std::string choice_in_words();

}  // namespace rocemu::command
