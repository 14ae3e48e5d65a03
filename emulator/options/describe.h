// Converts the rows of the option table to the form in which a command parses its options, and to
// help texts.
#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/options/option_table.h"

namespace rocemu::options {

/// Returns all options of the command, including hidden ones.
boost::program_options::options_description options_of(Command command);

/// Returns the options of the command that occur in the arguments. boost compares each argument
/// with each option, so parsing with all hundred options takes longer. Returns all options if an
/// argument may be a mistake. Call add_defaults() after parsing.
boost::program_options::options_description options_in(const std::vector<std::string>& arguments,
                                                       Command command);

/// Adds the values of the command's switches that were not given.
void add_defaults(Command command, boost::program_options::variables_map& values);

/// Returns a help text with the options of the command: a block for each task. Without `all`, it
/// has the options that --help shows, and the number of options that only --help-all shows; with
/// `all`, it has the options that --help-all shows.
std::string help_of(Command command, bool all);

/// Returns the reason why a command does not have `option`, given as "--name": only an earlier
/// version had it, or only other commands have it. Returns nullopt if no command ever had it.
std::optional<std::string> why_unknown(std::string_view option);

}  // namespace rocemu::options
