// Reads frames from a pcap or pcapng file of anybody: Ethernet with or without VLAN tags, Linux
// "any" captures, bare IP.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace rocemu::capture {

struct CapturedPacket {
  std::chrono::nanoseconds at{};   // since 1970
  std::span<const uint8_t> bytes;  // as they were captured
  std::span<const uint8_t> ip;     // the IP packet among them; empty if there is none
  uint32_t size = 0;               // on the wire; more than `bytes` if the capture cut it
};

/// Calls `take` for each. Returns an empty string, or why it ended early. Throws
/// std::runtime_error, which names the file, if it is no capture.
std::string read_pcap(const std::string& path,
                      const std::function<void(const CapturedPacket&)>& take);

}  // namespace rocemu::capture
