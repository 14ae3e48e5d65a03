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
  /// Prepares for --keep-on-failure; returns nothing without this option. Removes an earlier run's
  /// files from the directory, and makes inner runs keep their recordings there. `golden` may be
  /// null. Throws UsageError.
  static std::optional<KeptRun> make(const boost::program_options::variables_map& values,
                                     const GoldenRun* golden);

  const std::string& dir() const { return dir_; }
  /// Returns whether the NIC records into the directory itself, since no other option asks for a
  /// recording.
  bool is_recorded_there() const { return recorded_in_.empty(); }

  /// Copies a recording that the NIC wrote elsewhere. Must be called after the NIC's end.
  void copy() const;
  /// Removes the files of a successful run. Otherwise completes the recording, adds the report of a
  /// hang, and prints the directory.
  void finish(int status, const std::string& report, capture::CaptureLimits limits) const;

 private:
  std::string dir_;
  std::string recorded_in_;  // another directory into which the run is recorded; empty if none
};

}  // namespace rocemu::command
