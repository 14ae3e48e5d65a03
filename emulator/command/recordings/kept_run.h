// `rocemu run --keep-on-failure DIR`: a run whose recording stays if it fails.
#pragma once

#include <boost/program_options.hpp>
#include <optional>
#include <string>

#include "emulator/capture/pcap_writer.h"
#include "emulator/command/recordings/golden_run.h"

namespace rocemu::command {

class KeptRun {
 public:
  /// Returns nothing without --keep-on-failure. Removes what an earlier run left in the directory,
  /// and has runs inside this one keep their recordings there. `golden` may be null. Throws
  /// UsageError.
  static std::optional<KeptRun> make(const boost::program_options::variables_map& values,
                                     const GoldenRun* golden);

  const std::string& dir() const { return dir_; }
  /// Returns whether the NIC records in the directory itself, since nothing else asks for a
  /// recording.
  bool is_recorded_there() const { return recorded_in_.empty(); }

  /// Copies a recording that the NIC wrote elsewhere. Call it when the NIC has ended.
  void copy() const;
  /// Removes what a successful run left. Otherwise completes the recording, adds the report of a
  /// hang, and says where all of it is.
  void finish(int status, const std::string& report, capture::CaptureLimits limits) const;

 private:
  std::string dir_;
  std::string recorded_in_;  // another directory, if the run is recorded there anyhow
};

}  // namespace rocemu::command
