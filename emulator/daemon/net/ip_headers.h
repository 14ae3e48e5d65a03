// The IPv4 headers of the datagrams that arrive at a UDP socket, which does not report them. A raw
// socket, which needs CAP_NET_RAW, gets a copy of each packet before the UDP socket does.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "emulator/os/unique_fd.h"
#include "wire/ip_address.h"

namespace rocemu::daemon {

class IpHeaders {
 public:
  /// The fields of the IPv4 header that the ICRC covers and that differ from packet to packet
  struct Header {
    uint16_t identification;
    bool dont_fragment;
  };

  /// Opens a raw socket for packets to port 4791 of `address`, which is a multicast group or an
  /// address of the machine. Returns nothing, with errno set, if the permission is missing.
  static UniqueFd open_socket(const wire::IpAddress& address);

  explicit IpHeaders(UniqueFd socket) : socket_(std::move(socket)) {}

  /// Reads the headers that have arrived since the last call.
  void read();

  /// Returns the header of a datagram, which is identified by its source and by the beginning and
  /// the size of its payload. If the system split a packet into several datagrams after the raw
  /// socket saw it, their headers are numbered as if it had been split before. Returns nothing if
  /// the raw socket had no space for the header.
  std::optional<Header> take(const wire::IpAddress& src, uint16_t src_port,
                             std::span<const uint8_t> from, size_t size);

 private:
  static constexpr size_t kBeginning = 12;  // bytes that identify a payload: a BTH
  struct Packet {
    wire::IpAddress src;
    uint16_t src_port;
    Header header;
    uint16_t pieces;  // taken already
    size_t left;      // bytes of payload
    std::array<uint8_t, kBeginning> beginning;
  };

  void add(std::span<const uint8_t> packet);

  UniqueFd socket_;
  std::deque<Packet> packets_;
};

}  // namespace rocemu::daemon
