// The files that a run writes: the capture and the recording. A write error is reported once; an
// option decides whether the run ends with its recording.
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
  /// Opens the capture, if there is one. Throws StartError. `stop` ends the run.
  RunFiles(const Options& options, const Clock& clock, std::function<void()> stop);

  /// Returns the capture, or null if there is none.
  capture::PcapWriter* capture() { return capture_.get(); }
  /// Returns the captures of ports of a simulated network.
  PortCaptures& port_captures() { return port_captures_; }
  /// Starts the recording, and returns it to its owner; null if there is none. Throws StartError.
  std::unique_ptr<journal::Recording> make_recording(engine::HostMemory& memory);

  void flush();
  /// Reports errors of the recording.
  void check();
  /// Writes all buffered data, and reports frames that are missing from the captures.
  void finish();
  /// Makes all past events readable in the recording. Returns false if there is no recording.
  bool sync_recording();

  /// Returns whether the run must count as failed because it could not be recorded.
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
