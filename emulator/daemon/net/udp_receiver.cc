#include "emulator/daemon/net/udp_receiver.h"

#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

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

/// What the control part of a message says.
struct Control {
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
  size_t segment_size = 0;  // 0: it is one frame
};

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
  ReceiveBuffers() {
    for (size_t i = 0; i < kMaxDatagrams; ++i) {
      parts_[i] = {slots_[i].bytes.data() + kHeadersRoom, kMaxBytes};
      msghdr& message = messages[i].msg_hdr;
      message = {};
      message.msg_iov = &parts_[i];
      message.msg_iovlen = 1;
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
  /// With kHeadersRoom before it.
  std::span<uint8_t> datagram(size_t i) {
    return {slots_[i].bytes.data() + kHeadersRoom, messages[i].msg_len};
  }

  std::array<mmsghdr, kMaxDatagrams> messages;

 private:
  struct Slot {
    sockaddr_storage from;
    alignas(cmsghdr) std::array<uint8_t, 256> control;
    std::array<uint8_t, kHeadersRoom + kMaxBytes> bytes;
  };
  std::array<iovec, kMaxDatagrams> parts_;
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
  const int received = buffers.receive(socket_);
  const size_t count = received > 0 ? static_cast<size_t>(received) : 0;
  if (count > 0) arrived();
  if (count > 0 && headers_) headers_->read();
  for (size_t at = 0; at < count; ++at) {
    const Control control = read_control(buffers.messages[at].msg_hdr);
    const SocketAddress from = buffers.from(at);
    const bool is_v4 = from.any.sa_family == AF_INET;
    const size_t ip_size = is_v4 ? wire::Ipv4Header::kSize : wire::Ipv6Header::kSize;
    const size_t headers = wire::EthernetHeader::kSize + ip_size + wire::UdpHeader::kSize;
    ++counters_.receives;

    const std::span<uint8_t> datagram = buffers.datagram(at);
    std::optional<IpHeaders::Header> known;
    if (headers_) {
      known = headers_->take(from.ip(), from.port(), datagram);
      if (!known) {
        ++counters_.dropped_unverified;
        continue;
      }
    }
    const size_t step = control.segment_size == 0 ? datagram.size() : control.segment_size;
    uint16_t piece = 0;
    size_t begin = 0;
    do {
      const size_t size = std::min(step, datagram.size() - begin);
      // Into what was before it: room of our own, or a frame that is done with.
      const std::span<uint8_t> frame(datagram.data() + begin - headers, headers + size);
      const auto udp_size = static_cast<uint16_t>(wire::UdpHeader::kSize + size);
      wire::emit(
          wire::EthernetHeader{.dst = mac_,
                               .src = {},
                               .ether_type = is_v4 ? wire::kEtherTypeIpv4 : wire::kEtherTypeIpv6},
          frame.first<wire::EthernetHeader::kSize>());
      const auto ip = frame.subspan(wire::EthernetHeader::kSize);
      if (is_v4) {
        // A peer that sends as we do numbers the pieces of one system call.
        wire::emit(wire::Ipv4Header{.traffic_class = control.traffic_class,
                                    .total_length = static_cast<uint16_t>(ip_size + udp_size),
                                    .identification = known ? known->identification : piece,
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
      take(engine::ReceiveFrame{device_, frame, known.has_value()});
      ++piece;
      begin += step;
    } while (begin < datagram.size());
  }
  return count;
}

}  // namespace rocemu::daemon
