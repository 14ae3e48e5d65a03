// `rocemu run --keep-on-failure DIR`: keeps the recording of a run if the run fails.
#pragma once

#include <boost/program_options.hpp>
#include <optional>
#include <string>

#include "emulator/capture/pcap_writer.h"
#include "emulator/command/recordings/golden_run.h"

namespace rocemu::command {

class KeptRun {
 public:
  /// Prepares for --keep-on-failure; returns nothing without that option. Removes an earlier run's
  /// files from the directory, and makes inner runs keep their recordings in it. `golden` may be
  /// null. Throws UsageError.
  static std::optional<KeptRun> make(const boost::program_options::variables_map& values,
                                     const GoldenRun* golden);

  const std::string& dir() const { return dir_; }
  /// Returns whether the NIC records directly into the directory of --keep-on-failure, since no
  /// other option requests a recording.
  bool is_recorded_there() const { return recorded_in_.empty(); }

  /// Copies a recording that the NIC wrote to another directory. Must be called after the NIC has
  /// ended.
  void copy() const;
  /// If the run succeeded, removes its files. Otherwise completes the recording, adds the report of
  /// a hang, and prints the directory's name.
  void finish(int status, const std::string& report, capture::CaptureLimits limits) const;

 private:
  std::string dir_;
  std::string recorded_in_;  // another directory into which the run is recorded; empty if none
};

}  // namespace rocemu::command
