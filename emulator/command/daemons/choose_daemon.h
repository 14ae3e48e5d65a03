// Chooses the running daemon that a subcommand refers to.
#pragma once

#include <string>

#include "emulator/command/base/subcommand.h"
#include "emulator/command/daemons/control_client.h"

namespace rocemu::command {

/// Adds --dir.
void add_dir_option(boost::program_options::options_description& options);

/// Returns the daemon in the directory given by --dir; else that of the surrounding `rocemu run`;
/// else the shared daemon; else the only daemon of this user. `invocation` is the subcommand as the
/// user would repeat it, before a --dir. Throws Failure if there is no daemon, or more than one
/// candidate.
ControlClient choose_daemon(const boost::program_options::variables_map& values,
                            const std::string& invocation);

/// Describes how choose_daemon() chooses, for help texts.
std::string choice_in_words();

}  // namespace rocemu::command
