#include "emulator/daemon/net/ip_headers.h"

#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>

#include "emulator/daemon/base/socket_address.h"
#include "wire/udp.h"

namespace rocemu::daemon {
namespace {

/// The number of bytes that are copied of each packet: the longest IPv4 header, a UDP header, and
/// the beginning of the payload.
constexpr uint32_t kCopied = 60 + 8 + 12;
/// The maximum number of headers that are kept. It is more than the number of packets that the UDP
/// socket can hold. When there are more, the oldest are dropped: the UDP socket had no space for
/// their packets.
constexpr size_t kMaxPackets = 1 << 14;
constexpr size_t kAtOnce = 64;
constexpr int kSocketBuffer = 8 << 20;

uint16_t word_at(std::span<const uint8_t> bytes, size_t at) {
  return static_cast<uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}

}  // namespace

UniqueFd IpHeaders::open_socket(const wire::IpAddress& address) {
  UniqueFd fd(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP));
  if (!fd) return fd;
  // The filter selects packets to the RoCEv2 port, and truncates them after their headers.
  sock_filter program[] = {
      {BPF_LDX | BPF_B | BPF_MSH, 0, 0, 0},                   // X: the IP header's size
      {BPF_LD | BPF_H | BPF_IND, 0, 0, 2},                    // A: the destination port
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, wire::kRoceUdpPort},  //
      {BPF_RET | BPF_K, 0, 0, kCopied},                       //
      {BPF_RET | BPF_K, 0, 0, 0},
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  const SocketAddress local(address, 0, 0);
  const int buffer = kSocketBuffer;
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
  if (setsockopt(fd.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0 ||
      bind(fd.get(), &local.any, local.size) != 0) {
    return {};
  }
  return fd;
}

void IpHeaders::read() {
  std::array<std::array<uint8_t, kCopied>, kAtOnce> room;
  std::array<iovec, kAtOnce> parts;
  std::array<mmsghdr, kAtOnce> messages{};
  for (size_t i = 0; i < kAtOnce; ++i) {
    parts[i] = {room[i].data(), room[i].size()};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  int count;
  do {
    count = recvmmsg(socket_.get(), messages.data(), kAtOnce, MSG_DONTWAIT, nullptr);
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<size_t>(i);
      add(std::span(room[at]).first(std::min<size_t>(messages[at].msg_len, kCopied)));
    }
  } while (count == static_cast<int>(kAtOnce));
}

void IpHeaders::add(std::span<const uint8_t> packet) {
  if (packet.size() < 20) return;
  const size_t ip_size = size_t{4} * (packet[0] & 0x0fu);
  const size_t payload_at = ip_size + wire::UdpHeader::kSize;
  if (ip_size < 20 || packet.size() < payload_at) return;
  constexpr uint16_t kDontFragment = 0x4000;
  Packet entry{.src = wire::IpAddress::from_v4(packet[12], packet[13], packet[14], packet[15]),
               .src_port = word_at(packet, ip_size),
               .header = {word_at(packet, 4), (word_at(packet, 6) & kDontFragment) != 0},
               .pieces = 0,
               .left = 0,
               .beginning = {}};
  const size_t udp_size = word_at(packet, ip_size + 4);
  entry.left = udp_size - std::min(udp_size, wire::UdpHeader::kSize);
  const auto payload = packet.subspan(payload_at);
  std::ranges::copy(payload.first(std::min(payload.size(), kBeginning)), entry.beginning.begin());
  if (packets_.size() == kMaxPackets) packets_.pop_front();
  packets_.push_back(entry);
}

std::optional<IpHeaders::Header> IpHeaders::take(const wire::IpAddress& src, uint16_t src_port,
                                                 std::span<const uint8_t> from, size_t size) {
  std::array<uint8_t, kBeginning> beginning{};
  std::ranges::copy(from.first(std::min(from.size(), kBeginning)), beginning.begin());
  const auto find = [&](auto agrees) {
    return std::ranges::find_if(packets_, [&](const Packet& packet) {
      return packet.src_port == src_port && packet.src == src && size <= packet.left &&
             agrees(packet);
    });
  };
  // A packet of which no part was taken is searched first, because the UDP socket may have had no
  // space for the remaining parts of an earlier packet.
  auto found = find(
      [&](const Packet& packet) { return packet.pieces == 0 && packet.beginning == beginning; });
  if (found == packets_.end()) found = find([](const Packet& packet) { return packet.pieces > 0; });
  if (found == packets_.end()) return std::nullopt;
  Header header = found->header;
  header.identification = static_cast<uint16_t>(header.identification + found->pieces);
  ++found->pieces;
  found->left -= size;
  // Packets of one source arrive in order. Earlier packets that are still listed were lost, because
  // the UDP socket had no space for them.
  auto end = found->left == 0 ? std::next(found) : found;
  packets_.erase(std::remove_if(packets_.begin(), end,
                                [&](const Packet& packet) {
                                  return packet.src_port == src_port && packet.src == src;
                                }),
                 end);
  return header;
}

}  // namespace rocemu::daemon
