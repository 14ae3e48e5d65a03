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

/// Throws Failure in a run whose programs take turns: the programs of a run inside it would have to
/// wait for the turns of both runs.
void require_own_clock(std::string_view subcommand);

/// Returns the arguments for rocemud: the options of the command that rocemud also has. Returns an
/// empty list if no such option was given. Throws UsageError for wrong options, and Failure if they
/// request a virtual clock inside a run that already has one.
std::vector<std::string> daemon_arguments(options::Command command,
                                          const boost::program_options::variables_map& values);

/// Opens the file of --capture; returns nothing without that option. The file is opened in this
/// process and not in the daemon, since its name may be relative or refer to a descriptor of this
/// process. Throws Failure.
std::optional<capture::CaptureFile> open_capture(
    const boost::program_options::variables_map& values);

/// Returns the concatenated text of the files that --scenario names; empty if there are none. Each
/// file is read once, and in this process, because it may be a pipe or a descriptor of this
/// process. Prints warnings about probable mistakes. Throws Failure.
std::string read_scenarios(const boost::program_options::variables_map& values);

}  // namespace rocemu::command
