// Converts the rows of the option table to the form in which a command parses its options, and to
// help texts.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "emulator/options/option_table.h"

namespace rocemu::options {

/// Returns all options of the command, including hidden ones.
boost::program_options::options_description options_of(Command command);

/// Returns a help text with the options of the command: a block for each task. Without `all`, it
/// has the options that --help shows, and the number of options that only --help-all shows; with
/// `all`, it has the options that --help-all shows.
std::string help_of(Command command, bool all);

/// Returns the reason why a command does not have `option`, given as "--name": only an earlier
/// version had it, or only other commands have it. Returns nullopt if no command ever had it.
std::optional<std::string> why_unknown(std::string_view option);

}  // namespace rocemu::options
