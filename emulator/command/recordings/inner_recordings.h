// Keeps the recordings of runs inside a `rocemu run --keep-on-failure DIR`, such as runs of tests
// that start a separate NIC. Each recording is DIR/nic-PID, or a link with that name if the inner
// run chose another directory.
#pragma once

#include <boost/program_options.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace rocemu::command {

/// Makes this run record for the outer run, if the outer run keeps recordings. Returns the
/// directory of the recording; an empty text if the outer run does not keep recordings, or this run
/// has its own. `arguments` are the daemon's arguments.
std::string record_for_outer_run(const boost::program_options::variables_map& values,
                                 std::vector<std::string>& arguments);

/// Replaces links in `dir` with copies of the recordings. If `dir` is also the recording of a NIC
/// that no program used, and there is exactly one inner run, replaces that recording with the inner
/// run's.
void take_inner_recordings(const std::filesystem::path& dir);

void remove_inner_recordings(const std::filesystem::path& dir);

}  // namespace rocemu::command
