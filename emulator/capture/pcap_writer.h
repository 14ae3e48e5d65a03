// Writes frames to a pcap file for Wireshark: Ethernet, nanosecond timestamps. This does not need
// libpcap, which is only loaded to read captures (libpcap.h).
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

/// The treatment of frames for which a stream has no room because its reader is slow.
enum class SlowReader { kIsWaitedFor, kMissesFrames };

/// The limits on the frames that are kept.
struct CaptureLimits {
  size_t snap_length = 65535;  // the first bytes of each frame that are kept
  uint64_t last_frames = 0;    // the number of latest frames to keep, written at the end; 0: all
};

class PcapWriter {
 public:
  /// `start` is the wall-clock time of Instant 0. If the file is not open or cannot be written,
  /// is_open() is false, and error() has its name and the reason.
  PcapWriter(CaptureFile file, std::chrono::system_clock::time_point start,
             SlowReader slow_reader = SlowReader::kIsWaitedFor, CaptureLimits limits = {});
  PcapWriter(const std::string& path, std::chrono::system_clock::time_point start)
      : PcapWriter(open_capture_file(path), start) {}
  ~PcapWriter();
  PcapWriter(const PcapWriter&) = delete;
  PcapWriter& operator=(const PcapWriter&) = delete;

  /// Writes a frame. Returns false if writing fails. After a failure, nothing more is written,
  /// is_open() is false, and write() and finish() do nothing and return false.
  bool write(engine::Instant at, std::span<const uint8_t> frame);
  bool flush();
  /// Waits until everything is in the file; returns false like write(). Does not wait for a reader
  /// that may miss frames and has stopped reading.
  bool finish();

  /// Returns the number of frames that are missing because the reader was too slow (kMissesFrames).
  uint64_t lost_frames() const { return lost_frames_; }

  bool is_open() const { return is_open_; }
  /// Returns the reason after a call returned false.
  const std::string& error() const { return error_; }

 private:
  /// Gives the frame that was just written the UDP checksum that it lacks.
  void complete(std::span<const uint8_t> frame, size_t kept);
  /// Writes the latest frames, if only those are wanted.
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
