// The IPv4 headers of the datagrams that arrive at a UDP socket, which does not report them. They
// come from a raw socket, which needs CAP_NET_RAW and gets a copy of each packet before the UDP
// socket does.
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
  /// The part of the ICRC's input that differs from packet to packet
  struct Header {
    uint16_t identification;
    bool dont_fragment;
  };

  /// Returns a socket for packets to port 4791 of `address`, a group or the machine's own; without
  /// permission returns none, with errno set.
  static UniqueFd open_socket(const wire::IpAddress& address);

  explicit IpHeaders(UniqueFd socket) : socket_(std::move(socket)) {}

  /// Reads the headers that have arrived.
  void read();

  /// Returns the header of the datagram with that source, whose payload has that beginning and
  /// size. If a packet was split into datagrams only after the raw socket, its parts are numbered
  /// as if they had been split before. Returns nothing if the raw socket had no space for the
  /// header.
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
