// The files that a run writes: captures and the recording. A write error is reported only once. An
// option determines whether the run ends when its recording ends.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "emulator/capture/pcap_writer.h"
#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/daemon_options.h"
#include "emulator/journal/recording.h"

namespace rocemu::daemon {

/// The captures of ports of a simulated network, in the order of engine::PortCapture::capture.
using PortCaptures = std::vector<std::unique_ptr<capture::PcapWriter>>;

class RunFiles {
 public:
  /// Opens the captures that the options request. Throws StartError. `stop` is called to end the
  /// run.
  RunFiles(const Options& options, const Clock& clock, std::function<void()> stop);

  /// Returns the capture, or null if there is none.
  capture::PcapWriter* capture() { return capture_.get(); }
  /// Returns the captures of ports of a simulated network.
  PortCaptures& port_captures() { return port_captures_; }
  /// Starts the recording and returns it; null if the options request none. Throws StartError.
  std::unique_ptr<journal::Recording> make_recording(engine::HostMemory& memory);

  void flush();
  /// Reports an error of the recording, and calls `stop` if the run must end then.
  void check();
  /// Writes all buffered data, and reports how many frames the captures lack.
  void finish();
  /// Writes everything up to now to the files of the recording. Returns false if there is no
  /// recording.
  bool sync_recording();

  /// Returns whether the run has failed because it could not be recorded.
  bool has_failed() const { return recording_failed_ && options_.stop_without_record; }

 private:
  void finish_capture();

  const Options& options_;
  const Clock& clock_;
  std::function<void()> stop_;
  std::unique_ptr<capture::PcapWriter> capture_;
  PortCaptures port_captures_;
  journal::Recording* recording_ = nullptr;
  bool recording_failed_ = false;
};

}  // namespace rocemu::daemon
