// The IPv4 headers of what comes to a UDP socket, which does not tell them: from a raw socket, for
// which CAP_NET_RAW is needed, and which gets a copy of each packet before the UDP socket does.
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
  /// Of what the ICRC covers, the part that differs from packet to packet.
  struct Header {
    uint16_t identification;
    bool dont_fragment;
  };

  /// A socket for what comes to port 4791 of `address`, a group's or the machine's own; none and
  /// errno without the right to have it.
  static UniqueFd open_socket(const wire::IpAddress& address);

  explicit IpHeaders(UniqueFd socket) : socket_(std::move(socket)) {}

  /// The headers that have come.
  void read();

  /// Of the datagram with that source, whose payload has that beginning and size. Where a packet
  /// was cut into datagrams only behind the raw socket, its pieces are numbered as if they had been
  /// cut before. Nothing if the raw socket had no room for it.
  std::optional<Header> take(const wire::IpAddress& src, uint16_t src_port,
                             std::span<const uint8_t> from, size_t size);

 private:
  static constexpr size_t kBeginning = 12;  // bytes of a payload to know it by: a BTH
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
