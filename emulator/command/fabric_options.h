// The options that describe a fabric, common to `rocemu run` and `rocemu up`. They are checked
// here, so that a mistake is answered in the words of the command line, and handed to rocemud.
#pragma once

#include <boost/program_options.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu::command {

boost::program_options::options_description fabric_options();

/// The arguments for rocemud; empty if no option was given. Throws UsageError.
std::vector<std::string> daemon_arguments(std::string_view subcommand,
                                          const boost::program_options::variables_map& values);

}  // namespace rocemu::command
