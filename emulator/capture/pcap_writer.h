// Writes frames into a pcap file that any Wireshark opens: Ethernet, nanosecond timestamps. libpcap
// is not needed for that, and is loaded only to read captures (libpcap.h).
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

/// What becomes of frames that the reader of a stream has no room for yet.
enum class SlowReader { kIsWaitedFor, kMissesFrames };

/// What of the frames is kept.
struct CaptureLimits {
  size_t snap_length = 65535;  // bytes of each frame, from its beginning
  uint64_t last_frames = 0;    // only so many, the latest, which are written at the end; 0: all
};

class PcapWriter {
 public:
  /// `start` is the wall-clock time of Instant 0. If the file is not open, or cannot be written,
  /// is_open() is false and error() names it and the reason.
  PcapWriter(CaptureFile file, std::chrono::system_clock::time_point start,
             SlowReader slow_reader = SlowReader::kIsWaitedFor, CaptureLimits limits = {});
  PcapWriter(const std::string& path, std::chrono::system_clock::time_point start)
      : PcapWriter(open_capture_file(path), start) {}
  ~PcapWriter();
  PcapWriter(const PcapWriter&) = delete;
  PcapWriter& operator=(const PcapWriter&) = delete;

  /// Both are false when writing fails now; from then on nothing is written, is_open() is false and
  /// both do nothing.
  bool write(engine::Instant at, std::span<const uint8_t> frame);
  bool flush();
  /// The same, and waits until all is in the file. A reader that may miss frames is not waited for
  /// once it takes no more.
  bool finish();

  /// Frames that are not in the capture because its reader was too slow (kMissesFrames).
  uint64_t lost_frames() const { return lost_frames_; }

  bool is_open() const { return is_open_; }
  /// Once something was false.
  const std::string& error() const { return error_; }

 private:
  /// Gives the frame that was just written the UDP checksum that it lacks.
  void complete(std::span<const uint8_t> frame, size_t kept);
  /// The latest frames, where only those are wanted.
  bool write_ring();
  bool fail(int error);

  std::string name_;
  SlowReader slow_reader_;
  CaptureLimits limits_;
  BackgroundFile disk_;
  std::deque<std::vector<std::byte>> ring_;  // with last_frames: those so far
  std::vector<std::byte> unwritten_;         // the header, or whole frames
  uint64_t unwritten_frames_ = 0;
  uint64_t lost_frames_ = 0;
  std::chrono::nanoseconds start_;
  std::string error_;
  bool is_open_ = false;
};

}  // namespace rocemu::capture
