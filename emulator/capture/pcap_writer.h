// Writes frames to a pcap file for Wireshark, as Ethernet frames with nanosecond timestamps. This
// file does not need libpcap, which is only loaded to read captures (libpcap.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emulator/capture/capture_file.h"
#include "emulator/engine/base/time.h"
#include "emulator/os/background_file.h"

namespace rocemu::capture {

/// The behavior when the reader of a stream is too slow: the writer waits for it, or omits frames.
enum class SlowReader { kIsWaitedFor, kMissesFrames };

/// Limits on the data that a capture keeps
struct CaptureLimits {
  size_t snap_length = 65535;  // the first bytes of each frame that are kept
  uint64_t last_frames = 0;    // the number of latest frames to keep, written at the end; 0: all
};

class PcapWriter {
 public:
  /// Writes the header of the file. `start` is the wall-clock time of Instant 0. If the file is not
  /// open or cannot be written, is_open() is false, and error() returns its name and the reason.
  PcapWriter(CaptureFile file, std::chrono::system_clock::time_point start,
             SlowReader slow_reader = SlowReader::kIsWaitedFor, CaptureLimits limits = {});
  PcapWriter(const std::string& path, std::chrono::system_clock::time_point start)
      : PcapWriter(open_capture_file(path), start) {}
  ~PcapWriter();
  PcapWriter(const PcapWriter&) = delete;
  PcapWriter& operator=(const PcapWriter&) = delete;

  /// Writes a frame. Returns false if this fails. After a failure is_open() is false, and further
  /// calls write nothing and return true.
  bool write(engine::Instant at, std::span<const uint8_t> frame);
  bool flush();
  /// Waits until everything is in the file. Returns false if writing fails. Does not wait for a
  /// reader that may miss frames and has stopped reading.
  bool finish();

  /// Returns the number of frames that were omitted because the reader was too slow
  /// (kMissesFrames).
  uint64_t lost_frames() const { return lost_frames_; }

  bool is_open() const { return is_open_; }
  /// Returns the reason of the failure after a call has returned false.
  const std::string& error() const { return error_; }

 private:
  /// Adds the UDP checksum to the latest frame in `unwritten_` if the frame is over IPv6 and lacks
  /// it.
  void complete(std::span<const uint8_t> frame, size_t kept);
  /// Writes the frames of the ring, if only the latest frames are kept.
  bool write_ring();
  bool fail(int error);

  std::string name_;
  SlowReader slow_reader_;
  CaptureLimits limits_;
  BackgroundFile disk_;
  std::deque<std::vector<std::byte>> ring_;  // with last_frames: the frames kept so far
  std::vector<std::byte> unwritten_;         // the header, or complete frames
  uint64_t unwritten_frames_ = 0;
  uint64_t lost_frames_ = 0;
  std::chrono::nanoseconds start_;
  std::string error_;
  bool is_open_ = false;
};

}  // namespace rocemu::capture
