// The recordings of runs inside of a `rocemu run --keep-on-failure DIR`, such as those of tests
// that have a NIC of their own: each is DIR/nic-PID, or a link there to where the inner run is
// recorded anyhow.
#pragma once

#include <boost/program_options.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace rocemu::command {

/// Has the run recorded for the one that it is inside of, if that keeps recordings. Returns the
/// directory, if nothing else is recorded; `arguments` are those of the daemon.
std::string record_for_outer_run(const boost::program_options::variables_map& values,
                                 std::vector<std::string>& arguments);

/// Puts copies in the place of links. If `dir` itself is the recording of a NIC that no program
/// used, and there is one inner run, `dir` becomes the recording of that.
void take_inner_recordings(const std::filesystem::path& dir);

void remove_inner_recordings(const std::filesystem::path& dir);

}  // namespace rocemu::command
