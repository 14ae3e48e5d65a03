// Reads frames from any pcap or pcapng file: Ethernet with or without VLAN tags, Linux "any"
// captures, bare IP.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace rocemu::capture {

struct CapturedPacket {
  std::chrono::nanoseconds at{};   // since 1970
  std::span<const uint8_t> bytes;  // as captured
  std::span<const uint8_t> ip;     // the IP packet in `bytes`; empty if there is none
  uint32_t size = 0;  // on the wire; larger than `bytes` if the capture truncated the frame
};

/// Calls `take` for each frame. Returns an empty string, or the reason for an early end. Throws
/// std::runtime_error, with the name of the file, if the file is not a capture.
std::string read_pcap(const std::string& path,
                      const std::function<void(const CapturedPacket&)>& take);

}  // namespace rocemu::capture
