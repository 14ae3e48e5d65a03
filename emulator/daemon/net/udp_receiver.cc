#include "emulator/daemon/net/udp_receiver.h"

#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "emulator/daemon/base/socket_address.h"
#include "wire/ip.h"
#include "wire/udp.h"

namespace rocemu::daemon {
namespace {

constexpr size_t kMaxDatagrams = UdpReceiver::kMaxDatagrams;
constexpr size_t kHeadersRoom = 64;
static_assert(kHeadersRoom >=
              wire::EthernetHeader::kSize + wire::Ipv6Header::kSize + wire::UdpHeader::kSize);
constexpr size_t kMaxBytes = 65536;
/// The maximum number of packets in one datagram. The system joins up to 64 (UDP_GRO_CNT_MAX) or
/// 128 packets (UDP_MAX_SEGMENTS).
constexpr size_t kMaxPieces = 128;
/// The minimum size of packets that the system scatters to separate buffers. For smaller ones,
/// copying takes less time than describing the buffers.
constexpr size_t kMinScattered = 1024;
constexpr size_t kMaxScattered = (kMaxBytes + kMinScattered - 1) / kMinScattered;
/// If a datagram has at least this many packets, later datagrams are expected to have their size.
/// A datagram of two or three packets can be the beginning of an RDMA WRITE, whose first packet is
/// longer.
constexpr size_t kManyPieces = 4;
/// The maximum number of frames in one burst. The burst is one step of the engine, for which other
/// frames wait.
constexpr size_t kMaxBurst = 256;

/// The control information of a received message
struct Control {
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
  size_t segment_size = 0;  // 0: the datagram is one frame
};

size_t round_down(size_t value, size_t step) {
  return value - value % step;
}

template <class Value>
Value value_of(cmsghdr* header) {
  Value value{};
  const size_t there = header->cmsg_len - CMSG_LEN(0);
  std::memcpy(&value, CMSG_DATA(header), std::min(sizeof value, there));
  return value;
}

Control read_control(msghdr& message) {
  Control control;
  for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
    const auto is = [&](int level, int type) {
      return at->cmsg_level == level && at->cmsg_type == type;
    };
    if (is(IPPROTO_IP, IP_TOS)) {
      control.traffic_class = value_of<uint8_t>(at);
    } else if (is(IPPROTO_IPV6, IPV6_TCLASS)) {
      control.traffic_class = static_cast<uint8_t>(value_of<int>(at));
    } else if (is(IPPROTO_IP, IP_TTL) || is(IPPROTO_IPV6, IPV6_HOPLIMIT)) {
      control.hop_limit = static_cast<uint8_t>(value_of<int>(at));
    } else if (is(IPPROTO_UDP, UDP_GRO)) {
      control.segment_size = static_cast<size_t>(std::max(value_of<int>(at), 0));
    }
  }
  return control;
}

}  // namespace

class ReceiveBuffers {
 public:
  /// Sets the size of packets that is expected in the next datagrams.
  void expect(size_t piece_size) {
    const size_t size = piece_size < kMinScattered ? kMaxBytes : piece_size;
    if (size == expected_) return;
    expected_ = size;
    for (size_t i = 0; i < kMaxDatagrams; ++i) {
      size_t count = 0;
      for (size_t at = 0; at < kMaxBytes; at += size, ++count) {
        parts_[i][count] = {piece(i, count, size).data(), std::min(size, kMaxBytes - at)};
      }
      messages[i].msg_hdr.msg_iov = parts_[i].data();
      messages[i].msg_hdr.msg_iovlen = count;
    }
  }

  int receive(int socket) {
    for (size_t i = 0; i < kMaxDatagrams; ++i) {
      msghdr& message = messages[i].msg_hdr;
      message.msg_name = &slots_[i].from;
      message.msg_namelen = sizeof slots_[i].from;
      message.msg_control = slots_[i].control.data();
      message.msg_controllen = slots_[i].control.size();
    }
    return recvmmsg(socket, messages.data(), kMaxDatagrams, MSG_DONTWAIT, nullptr);
  }
  SocketAddress from(size_t i) const {
    SocketAddress address;
    std::memcpy(&address.v6, &slots_[i].from, sizeof address.v6);
    return address;
  }
  /// Returns the beginning of a datagram, up to the end of its first buffer.
  std::span<const uint8_t> beginning(size_t i) {
    return piece(i, 0, std::min<size_t>(messages[i].msg_len, expected_));
  }
  /// Moves the packets of a datagram to where piece() finds them, unless they already are there
  /// because `piece_size` was expected.
  void put_apart(size_t i, size_t piece_size) {
    const size_t size = std::min<size_t>(messages[i].msg_len, kMaxPieces * piece_size);
    if (piece_size == expected_ || size <= std::min(piece_size, expected_)) return;
    // A byte's position in the datagram, plus kHeadersRoom for each packet up to its own. Bytes
    // move down if the packets are larger than expected, and up if they are smaller. The order
    // ensures that none is overwritten before it has moved. If the packets are slightly larger, as
    // the first one of a WRITE is, most bytes of the first two are in place.
    const auto move = [&](size_t begin, size_t end) {
      uint8_t* const bytes = slots_[i].bytes.data() + begin;
      const size_t from = kHeadersRoom * (begin / expected_ + 1);
      const size_t to = kHeadersRoom * (begin / piece_size + 1);
      if (from != to) std::memmove(bytes + to, bytes + from, end - begin);
    };
    if (piece_size > expected_) {
      for (size_t at = 0, end; at < size; at = end) {
        end = std::min(
            {size, round_down(at, expected_) + expected_, round_down(at, piece_size) + piece_size});
        move(at, end);
      }
    } else {
      for (size_t end = size, at; end > 0; end = at) {
        at = std::max(round_down(end - 1, expected_), round_down(end - 1, piece_size));
        move(at, end);
      }
    }
  }
  /// Returns the space for packet `number` of a datagram, which has kHeadersRoom bytes in front of
  /// it. All packets but the last have the size `full`.
  std::span<uint8_t> piece(size_t i, size_t number, size_t size, size_t full) {
    return std::span(slots_[i].bytes).subspan(number * (kHeadersRoom + full) + kHeadersRoom, size);
  }

  std::array<mmsghdr, kMaxDatagrams> messages{};
  std::vector<engine::ReceivedFrame> burst;

 private:
  struct Slot {
    sockaddr_storage from;
    alignas(cmsghdr) std::array<uint8_t, 256> control;
    std::array<uint8_t, kMaxPieces * kHeadersRoom + kMaxBytes> bytes;
  };
  std::span<uint8_t> piece(size_t i, size_t number, size_t size) {
    return piece(i, number, size, expected_);
  }

  size_t expected_ = 0;
  std::array<std::array<iovec, kMaxScattered>, kMaxDatagrams> parts_;
  std::array<Slot, kMaxDatagrams> slots_;
};

void ReceiveBuffersDeleter::operator()(ReceiveBuffers* buffers) const {
  delete buffers;
}

ReceiveBuffersPointer make_receive_buffers() {
  return ReceiveBuffersPointer(new ReceiveBuffers);
}

void UdpReceiver::count_overruns() {
  std::array<uint32_t, SK_MEMINFO_VARS> memory{};
  socklen_t size = sizeof memory;
  if (getsockopt(socket_, SOL_SOCKET, SO_MEMINFO, memory.data(), &size) != 0) return;
  counters_.receive_overruns += memory[SK_MEMINFO_DROPS] - overruns_;
  overruns_ = memory[SK_MEMINFO_DROPS];
}

size_t UdpReceiver::receive(ReceiveBuffers& buffers, const Arrived& arrived, const Take& take) {
  buffers.expect(piece_size_);
  const int received = buffers.receive(socket_);
  const size_t count = received > 0 ? static_cast<size_t>(received) : 0;
  if (count > 0) arrived();
  if (count > 0 && headers_) headers_->read();
  for (size_t at = 0; at < count; ++at) {
    ++counters_.receives;
    add_frames(buffers, at);
    if (buffers.burst.size() < kMaxBurst && at + 1 < count) continue;
    if (!buffers.burst.empty()) take(buffers.burst);
    buffers.burst.clear();
  }
  return count;
}

void UdpReceiver::add_frames(ReceiveBuffers& buffers, size_t at) {
  const Control control = read_control(buffers.messages[at].msg_hdr);
  const SocketAddress from = buffers.from(at);
  const bool is_v4 = from.any.sa_family == AF_INET;
  const size_t ip_size = is_v4 ? wire::Ipv4Header::kSize : wire::Ipv6Header::kSize;
  const size_t headers = wire::EthernetHeader::kSize + ip_size + wire::UdpHeader::kSize;
  const size_t length = buffers.messages[at].msg_len;

  std::optional<IpHeaders::Header> known;
  if (headers_) {
    known = headers_->take(from.ip(), from.port(), buffers.beginning(at), length);
    if (!known) {
      ++counters_.dropped_unverified;
      return;
    }
  }
  const size_t full = control.segment_size == 0 ? length : control.segment_size;
  buffers.put_apart(at, full);
  uint16_t number = 0;
  size_t begin = 0;
  do {
    const size_t size = std::min(full, length - begin);
    const std::span<uint8_t> payload = buffers.piece(at, number, size, full);
    const std::span<uint8_t> frame(payload.data() - headers, headers + size);
    const auto udp_size = static_cast<uint16_t>(wire::UdpHeader::kSize + size);
    wire::emit(
        wire::EthernetHeader{.dst = mac_,
                             .src = {},
                             .ether_type = is_v4 ? wire::kEtherTypeIpv4 : wire::kEtherTypeIpv6},
        frame.first<wire::EthernetHeader::kSize>());
    const auto ip = frame.subspan(wire::EthernetHeader::kSize);
    if (is_v4) {
      // A peer that sends like this daemon numbers the packets of one system call from 0.
      wire::emit(wire::Ipv4Header{.traffic_class = control.traffic_class,
                                  .total_length = static_cast<uint16_t>(ip_size + udp_size),
                                  .identification = known ? known->identification : number,
                                  .dont_fragment = !known || known->dont_fragment,
                                  .hop_limit = control.hop_limit,
                                  .src = from.ip(),
                                  .dst = address_},
                 ip.first<wire::Ipv4Header::kSize>());
    } else {
      wire::emit(wire::Ipv6Header{.traffic_class = control.traffic_class,
                                  .payload_length = udp_size,
                                  .hop_limit = control.hop_limit,
                                  .src = from.ip(),
                                  .dst = address_},
                 ip.first<wire::Ipv6Header::kSize>());
    }
    wire::emit(wire::UdpHeader{.src_port = from.port(), .length = udp_size},
               ip.subspan(ip_size).first<wire::UdpHeader::kSize>());
    buffers.burst.push_back({device_, frame, known.has_value()});
    ++number;
    begin += full;
  } while (begin < length && number < kMaxPieces);
  if (number >= kManyPieces) piece_size_ = full;
}

}  // namespace rocemu::daemon
