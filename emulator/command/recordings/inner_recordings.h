// The recordings of runs inside a `rocemu run --keep-on-failure DIR`, such as those of tests that
// start their own NIC: each is DIR/nic-PID, or a link to the inner run's recording.
#pragma once

#include <boost/program_options.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace rocemu::command {

/// Has this run recorded for the outer run, if that keeps recordings. Returns the directory if the
/// run is not recorded otherwise; `arguments` are those of the daemon.
std::string record_for_outer_run(const boost::program_options::variables_map& values,
                                 std::vector<std::string>& arguments);

/// Replaces links by copies. If `dir` itself is the recording of a NIC that no program used, and
/// there is one inner run, `dir` becomes the recording of the inner run.
void take_inner_recordings(const std::filesystem::path& dir);

void remove_inner_recordings(const std::filesystem::path& dir);

}  // namespace rocemu::command
