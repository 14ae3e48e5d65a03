#include "emulator/daemon/net/udp_sender.h"

#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "emulator/daemon/base/socket_address.h"
#include "wire/ethernet.h"
#include "wire/identification.h"
#include "wire/ip.h"
#include "wire/opcode.h"
#include "wire/udp.h"

namespace rocemu::daemon {
namespace {

/// Of frames that the network has yet to take: where the daemon begins to wait for it, and what
/// one round of its loop may add nevertheless.
constexpr size_t kCongestion = 512;
constexpr size_t kQueueLimit = 16384;
/// UDP_MAX_SEGMENTS of older kernels.
constexpr size_t kMaxSegments = 64;
/// The largest IPv4 packet, less its headers.
constexpr size_t kMaxBytes = 65535 - wire::Ipv4Header::kSize - wire::UdpHeader::kSize;

/// How long acknowledgements wait: a program that polls posts its answer sooner, and to send them
/// by themselves takes longer.
constexpr engine::Duration kCompanyTime = std::chrono::nanoseconds(1'500);
/// More than that have company enough.
constexpr size_t kMaxHeld = 4;
/// Having waited in vain so often, only one in so many waits: a program may begin to answer.
constexpr uint32_t kDiscouraged = 8;
constexpr uint32_t kSeldom = 16;

constexpr size_t kIpAt = wire::EthernetHeader::kSize;

/// Where things are in a frame, which is one that the engine made.
struct Outline {
  explicit Outline(std::span<const uint8_t> frame)
      : is_v4(wire::ip_version(frame.subspan(kIpAt)) == 4),
        udp_at(kIpAt + (is_v4 ? wire::Ipv4Header::kSize : wire::Ipv6Header::kSize)),
        bytes(frame) {}

  uint8_t traffic_class() const {
    if (is_v4) return bytes[kIpAt + 1];
    return static_cast<uint8_t>(bytes[kIpAt] << 4 | bytes[kIpAt + 1] >> 4);
  }
  uint8_t hop_limit() const { return bytes[kIpAt + (is_v4 ? 8 : 7)]; }
  wire::IpAddress source() const { return address_at(is_v4 ? 12 : 8); }
  wire::IpAddress destination() const { return address_at(is_v4 ? 16 : 24); }
  uint16_t source_port() const {
    return static_cast<uint16_t>(bytes[udp_at] << 8 | bytes[udp_at + 1]);
  }
  size_t payload_at() const { return udp_at + wire::UdpHeader::kSize; }
  size_t payload_size() const { return bytes.size() - payload_at(); }
  /// May both be parts of one datagram that the system cuts into pieces?
  bool goes_with(const Outline& other) const {
    return is_v4 == other.is_v4 && hop_limit() == other.hop_limit() &&
           traffic_class() == other.traffic_class() && source_port() == other.source_port() &&
           (is_v4 ? same_at<8>(other, 12) : same_at<32>(other, 8));
  }

  bool is_v4;
  size_t udp_at;
  std::span<const uint8_t> bytes;

 private:
  /// Both addresses, of a size that is known here: for each frame once.
  template <size_t kSize>
  bool same_at(const Outline& other, size_t offset) const {
    return std::memcmp(&bytes[kIpAt + offset], &other.bytes[kIpAt + offset], kSize) == 0;
  }
  wire::IpAddress address_at(size_t offset) const {
    wire::IpAddress address = wire::IpAddress::from_v4(0, 0, 0, 0);
    const size_t size = is_v4 ? 4 : 16;
    std::ranges::copy(bytes.subspan(kIpAt + offset, size),
                      address.bytes.end() - static_cast<ptrdiff_t>(size));
    return address;
  }
};

/// The control part of a message: what of the IP header a socket leaves to the sender.
class ControlWriter {
 public:
  template <class Value>
  void add(int level, int type, Value value) {
    auto* header = reinterpret_cast<cmsghdr*>(bytes_.data() + size_);
    header->cmsg_level = level;
    header->cmsg_type = type;
    header->cmsg_len = CMSG_LEN(sizeof value);
    std::memcpy(CMSG_DATA(header), &value, sizeof value);
    size_ += CMSG_SPACE(sizeof value);
  }
  void* data() { return bytes_.data(); }
  size_t size() const { return size_; }

 private:
  alignas(cmsghdr) std::array<uint8_t, 3 * CMSG_SPACE(sizeof(int))> bytes_{};
  size_t size_ = 0;
};

/// nullptr if it is none that we know.
const wire::OpcodeInfo* opcode_of(const engine::Frame& frame) {
  return wire::find_opcode(frame.bytes()[Outline(frame.bytes()).payload_at()]);
}

bool is_acknowledgement(const engine::Frame& frame) {
  const wire::OpcodeInfo* opcode = opcode_of(frame);
  return opcode != nullptr && opcode->operation == wire::Operation::kAck;
}

bool is_request(const engine::Frame& frame) {
  const wire::OpcodeInfo* opcode = opcode_of(frame);
  return opcode != nullptr && !opcode->is_response;
}

}  // namespace

void UdpSender::add(engine::Frame frame) {
  if (queue_.size() - next_ >= kQueueLimit) {
    ++counters_.dropped_send_queue;
    return;
  }
  queue_.push_back(std::move(frame));
}

bool UdpSender::is_congested() const {
  return queue_.size() - next_ > kCongestion;
}

void UdpSender::clear() {
  queue_.clear();
  next_ = 0;
  held_since_.reset();
}

bool UdpSender::holds_back(engine::Instant now) {
  const auto first = queue_.begin() + static_cast<ptrdiff_t>(next_);
  if (!is_acknowledgement(*first)) return false;
  if (queue_.size() - next_ > kMaxHeld || !std::all_of(first, queue_.end(), is_acknowledgement)) {
    if (held_since_) held_in_vain_ = 0;
    put_acknowledgements_last();
    return false;
  }
  if (held_since_) return now - *held_since_ < kCompanyTime;
  if (held_in_vain_ >= kDiscouraged && held_in_vain_ % kSeldom != 0) {
    ++held_in_vain_;
    return false;
  }
  held_since_ = now;
  ++held_in_vain_;
  return true;
}

/// The first of a bundle is the longest. Requests may overtake acknowledgements, which are of the
/// other direction; responses may not, since a responder answers requests in their order.
void UdpSender::put_acknowledgements_last() {
  const auto first = queue_.begin() + static_cast<ptrdiff_t>(next_);
  const auto others = std::find_if_not(first, queue_.end(), is_acknowledgement);
  if (queue_.size() - next_ > kMaxSegments || !std::all_of(others, queue_.end(), is_request)) {
    return;
  }
  std::rotate(first, others, queue_.end());
}

int UdpSender::socket_of(const engine::Frame& frame) const {
  const Outline outline(frame.bytes());
  const auto port = std::ranges::find(sockets_.source_ports, outline.source_port());
  const auto endpoint =
      std::ranges::find(sockets_.endpoints, outline.source(), &UdpEndpoint::address);
  if (port == sockets_.source_ports.end() || endpoint == sockets_.endpoints.end()) return -1;
  return endpoint->send[static_cast<size_t>(port - sockets_.source_ports.begin())].get();
}

/// How many frames from there on leave together: all of one size, but that the last may be shorter.
size_t UdpSender::bundle_size(size_t first) const {
  if (!can_segment_) return 1;
  const Outline head(queue_[first].bytes());
  const size_t size = head.payload_size();
  const size_t most = std::min({kMaxSegments, kMaxBytes / size, queue_.size() - first});
  size_t count = 1;
  while (count < most) {
    const Outline next(queue_[first + count].bytes());
    const size_t next_size = next.payload_size();
    if (next_size > size || !next.goes_with(head)) break;
    ++count;
    if (next_size < size) break;
  }
  return count;
}

UdpSender::Sent UdpSender::send(size_t first, size_t count) {
  const int socket = socket_of(queue_[first]);
  if (socket < 0) {
    count_failure(EADDRNOTAVAIL, count);
    return Sent::kAll;
  }
  std::array<iovec, kMaxSegments> parts;
  for (size_t i = 0; i < count; ++i) {
    engine::Frame& frame = queue_[first + i];
    // Where a datagram is cut, its pieces are numbered from 0.
    wire::change_identification(frame.bytes(), static_cast<uint16_t>(i));
    const size_t at = Outline(frame.bytes()).payload_at();
    parts[i] = {frame.bytes().data() + at, frame.bytes().size() - at};
  }
  const Outline head(queue_[first].bytes());
  SocketAddress to(head.destination(), wire::kRoceUdpPort, sockets_.interface.index);
  ControlWriter control;
  control.add(head.is_v4 ? IPPROTO_IP : IPPROTO_IPV6, head.is_v4 ? IP_TOS : IPV6_TCLASS,
              int{head.traffic_class()});
  control.add(head.is_v4 ? IPPROTO_IP : IPPROTO_IPV6, head.is_v4 ? IP_TTL : IPV6_HOPLIMIT,
              int{head.hop_limit()});
  if (count > 1) {
    control.add(IPPROTO_UDP, UDP_SEGMENT, static_cast<uint16_t>(parts[0].iov_len));
  }
  msghdr message{};
  message.msg_name = &to.any;
  message.msg_namelen = to.size;
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  for (bool again = false;; again = true) {
    ++counters_.sends;
    if (sendmsg(socket, &message, MSG_DONTWAIT) >= 0) return Sent::kAll;
    const int error = errno;
    if (error == EINTR) continue;
    if (error == EAGAIN) return Sent::kBlocked;
    // EIO: the interface cannot compute checksums; EINVAL: a piece is larger than its MTU.
    if (count > 1 && (error == EIO || error == EINVAL || error == EMSGSIZE)) {
      if (error == EIO) can_segment_ = false;
      return Sent::kNotInOne;
    }
    if (!again) {
      // It may be an earlier datagram's error, which a look at it takes away.
      const uint64_t before = counters_.icmp_errors;
      read_errors(socket);
      if (counters_.icmp_errors != before) continue;
    }
    count_failure(error, count);
    return Sent::kAll;
  }
}

/// -1, or the socket to wait for.
int UdpSender::send_next(size_t count) {
  Sent sent = send(next_, count);
  if (sent == Sent::kNotInOne) sent = send(next_, count = 1);
  if (sent == Sent::kBlocked) {
    forget_sent();
    return socket_of(queue_[0]);
  }
  // The next frames are made in these buffers, which the caches have.
  for (size_t i = 0; i < count; ++i) queue_[next_++] = {};
  return -1;
}

void UdpSender::forget_sent() {
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(next_));
  next_ = 0;
}

int UdpSender::flush() {
  while (!is_empty()) {
    if (const int full = send_next(bundle_size(next_)); full >= 0) return full;
  }
  clear();
  return -1;
}

int UdpSender::flush_full() {
  while (!is_empty()) {
    const size_t count = bundle_size(next_);
    if (next_ + count == queue_.size()) break;
    if (const int full = send_next(count); full >= 0) return full;
  }
  forget_sent();
  return -1;
}

void UdpSender::count_failure(int error, size_t frames) {
  switch (error) {
    case ENOBUFS:
    case ENOMEM:
      counters_.dropped_send_queue += frames;
      return;
    case EMSGSIZE:
      counters_.dropped_too_big += frames;
      return;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENODEV:
    case ENXIO:
    case EADDRNOTAVAIL:
      counters_.dropped_unreachable += frames;
      return;
    default:
      counters_.dropped_refused += frames;
  }
}

void UdpSender::read_errors(int socket) {
  std::array<uint8_t, 512> control;
  msghdr message{};
  message.msg_control = control.data();
  for (;;) {
    message.msg_controllen = control.size();
    if (recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    ++counters_.icmp_errors;
  }
}

}  // namespace rocemu::daemon
