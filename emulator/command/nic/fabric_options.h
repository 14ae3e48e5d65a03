// The options that `rocemu run`, `rocemu up` and `rocemu explore` hand to rocemud. They are checked
// (emulator/options/) before a daemon is started.
#pragma once

#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/capture/capture_file.h"

#include "emulator/options/option_table.h"

namespace rocemu::command {

/// Throws Failure inside a run whose programs take turns: the programs of an inner run would wait
/// for the turns of both runs.
void require_own_clock(std::string_view subcommand);

/// Returns the arguments of the command that rocemud also has; empty if no option was given. Throws
/// UsageError, and Failure if they want a virtual clock inside a run that has one.
std::vector<std::string> daemon_arguments(options::Command command,
                                          const boost::program_options::variables_map& values);

/// Opens the file of --capture. This is done here and not in the daemon, since the name may be
/// relative or name one of our descriptors. Returns nothing without the option. Throws Failure.
std::optional<capture::CaptureFile> open_capture(
    const boost::program_options::variables_map& values);

/// Returns the text of the files that --scenario names; empty if there are none. They are read
/// once, and here, because a file may be a pipe or one of our descriptors. Prints warnings about
/// probable mistakes. Throws Failure.
std::string read_scenarios(const boost::program_options::variables_map& values);

}  // namespace rocemu::command
