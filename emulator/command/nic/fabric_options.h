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

/// Throws Failure inside of a run whose programs take turns: of another one inside of it they would
/// wait for turns of both.
void require_own_clock(std::string_view subcommand);

/// The arguments of the command that are rocemud's, too; empty if no option was given. Throws
/// UsageError, and Failure if they want a virtual clock inside of a run that has one.
std::vector<std::string> daemon_arguments(options::Command command,
                                          const boost::program_options::variables_map& values);

/// Opens the file of --capture here and not in the daemon, since its name may be relative or one of
/// our descriptors. Returns nothing without the option. Throws Failure.
std::optional<capture::CaptureFile> open_capture(
    const boost::program_options::variables_map& values);

/// The text of what --scenario names, which is read once and here: it may be a pipe or one of our
/// descriptors. Says what is probably not meant. Empty if none was given. Throws Failure.
std::string read_scenarios(const boost::program_options::variables_map& values);

}  // namespace rocemu::command
