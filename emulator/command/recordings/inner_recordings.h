// The recordings of runs inside a `rocemu run --keep-on-failure DIR`, such as those of tests that
// start their own NIC. Each is DIR/nic-PID, or a link to the inner run's own recording.
#pragma once

#include <boost/program_options.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace rocemu::command {

/// Makes this run record for the outer run, if that keeps recordings. Returns the directory, or
/// nothing if the run has its own recording. `arguments` are those of the daemon.
std::string record_for_outer_run(const boost::program_options::variables_map& values,
                                 std::vector<std::string>& arguments);

/// Replaces links with copies. If `dir` itself is the recording of a NIC that no program used, and
/// there is one inner run, replaces it with the recording of the inner run.
void take_inner_recordings(const std::filesystem::path& dir);

void remove_inner_recordings(const std::filesystem::path& dir);

}  // namespace rocemu::command
