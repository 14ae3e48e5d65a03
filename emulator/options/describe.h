// Converts the rows of the option table to the form in which a command parses them and its help
// shows them.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "emulator/options/option_table.h"

namespace rocemu::options {

/// Returns all options of the command, hidden ones too.
boost::program_options::options_description options_of(Command command);

/// Returns the options of the command that are shown in its --help, or with `all` in its
/// --help-all: a block for each task, and the number of options that only --help-all shows.
std::string help_of(Command command, bool all);

/// Returns the reason why a command does not have `option`, given as "--name": an earlier version
/// had it, or only other commands have it. Returns nullopt if no command ever had it.
std::optional<std::string> why_unknown(std::string_view option);

}  // namespace rocemu::options
