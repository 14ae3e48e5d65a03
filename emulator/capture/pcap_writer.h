// Writes frames into a pcap file that any Wireshark opens: Ethernet, nanosecond timestamps. For any
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "emulator/engine/time.h"
#include "emulator/os/background_file.h"

struct pcap;
struct pcap_dumper;

namespace rocemu::capture {

class PcapWriter {
 public:
  /// `start` is the wall-clock time of Instant 0. If the file cannot be made, is_open() is false
  /// and error() names the path and the reason.
  PcapWriter(const std::string& path, std::chrono::system_clock::time_point start);
  ~PcapWriter();
  PcapWriter(const PcapWriter&) = delete;
  PcapWriter& operator=(const PcapWriter&) = delete;

  /// Both are false when writing fails now; from then on nothing is written, is_open() is false and
  /// both do nothing.
  bool write(engine::Instant at, std::span<const uint8_t> frame);
  bool flush();
  /// The same, and waits until all is in the file.
  bool finish();

  bool is_open() const;
  /// Once something was false.
  const std::string& error() const { return error_; }

 private:
  bool hand_over();
  bool fail(int error);

  mutable std::mutex mutex_;
  std::string path_;
  BackgroundFile disk_;
  std::vector<std::byte> unwritten_;
  std::chrono::nanoseconds start_;
  int64_t latest_ = 0;  // of several threads none is to take the file's time back
  std::string error_;
  pcap* format_ = nullptr;
  pcap_dumper* file_ = nullptr;
};

}  // namespace rocemu::capture
