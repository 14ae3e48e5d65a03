// Chooses the running daemon that a subcommand refers to.
#pragma once

#include <string>

#include "emulator/command/base/subcommand.h"
#include "emulator/command/daemons/control_client.h"

namespace rocemu::command {

/// Adds --dir.
void add_dir_option(boost::program_options::options_description& options);

/// Returns the daemon in the directory that --dir names. Without --dir, returns the daemon of the
/// surrounding `rocemu run`; else the shared daemon; else the only daemon of this user. Throws
/// Failure if there is no daemon, or more than one candidate; the message suggests the command
/// `invocation` with --dir.
ControlClient choose_daemon(const boost::program_options::variables_map& values,
                            const std::string& invocation);

/// Returns the rules by which choose_daemon() chooses, in words for help texts.
std::string choice_in_words();

}  // namespace rocemu::command
