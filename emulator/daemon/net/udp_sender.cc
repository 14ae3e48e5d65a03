#include "emulator/daemon/net/udp_sender.h"

#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "emulator/daemon/base/socket_address.h"
#include "wire/ethernet.h"
#include "wire/identification.h"
#include "wire/ip.h"
#include "wire/opcode.h"
#include "wire/udp.h"

namespace rocemu::daemon {
namespace {

/// The number of waiting frames above which the daemon is congested and adds no more. One round of
/// the daemon's loop can still exceed this number, up to kQueueLimit.
constexpr size_t kCongestion = 512;
constexpr size_t kQueueLimit = 16384;
/// The maximum number of segments of a datagram, which is UDP_MAX_SEGMENTS of older kernels.
constexpr size_t kMaxSegments = 64;
/// The largest IPv4 packet without its headers, in bytes.
constexpr size_t kMaxBytes = 65535 - wire::Ipv4Header::kSize - wire::UdpHeader::kSize;

/// The time for which acknowledgements wait for a reply of the program. A program that polls posts
/// its reply sooner than this, and sending the acknowledgements separately takes longer.
constexpr engine::Duration kCompanyTime = std::chrono::nanoseconds(1'500);
/// The maximum number of acknowledgements that may wait.
constexpr size_t kMaxHeld = 4;
/// The number of consecutive waits without a reply after which acknowledgements normally no longer
/// wait. Only every kSeldom-th one still waits, to detect that the program has started to reply.
constexpr uint32_t kDiscouraged = 8;
constexpr uint32_t kSeldom = 16;

constexpr size_t kIpAt = wire::EthernetHeader::kSize;

/// The positions of the header fields in a frame that the engine created
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
  /// Returns whether one socket can send both frames without a change of its options.
  bool leaves_like(const Outline& other) const {
    return is_v4 == other.is_v4 && hop_limit() == other.hop_limit() &&
           traffic_class() == other.traffic_class() && source_port() == other.source_port() &&
           (is_v4 ? same_at<4>(other, 12) : same_at<16>(other, 8));
  }
  size_t payload_at() const { return udp_at + wire::UdpHeader::kSize; }
  size_t payload_size() const { return bytes.size() - payload_at(); }
  /// Returns whether both frames can be parts of one datagram that the system splits.
  bool goes_with(const Outline& other) const {
    return leaves_like(other) && (is_v4 ? same_at<4>(other, 16) : same_at<16>(other, 24));
  }

  bool is_v4;
  size_t udp_at;
  std::span<const uint8_t> bytes;

 private:
  /// Returns whether both frames have the same kSize bytes at this offset of the IP header. kSize
  /// is known at compile time, since this runs for each frame.
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

/// A datagram that the system can send
struct Datagram {
  SocketAddress to;
  alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(sizeof(uint16_t))> control;
  std::array<iovec, kMaxSegments> parts;

  /// Puts the frames into one datagram. If there are several, the system splits it again.
  void fill(std::span<engine::Frame> frames, uint32_t interface, msghdr& header) {
    for (size_t i = 0; i < frames.size(); ++i) {
      const std::span<uint8_t> bytes = frames[i].bytes();
      // When the system splits a datagram, it numbers the packets from 0.
      wire::change_identification(bytes, static_cast<uint16_t>(i));
      const size_t at = Outline(bytes).payload_at();
      parts[i] = {bytes.data() + at, bytes.size() - at};
    }
    to = SocketAddress(Outline(frames[0].bytes()).destination(), wire::kRoceUdpPort, interface);
    header = {};
    header.msg_name = &to.any;
    header.msg_namelen = to.size;
    header.msg_iov = parts.data();
    header.msg_iovlen = frames.size();
    if (frames.size() == 1) return;
    auto* segment = reinterpret_cast<cmsghdr*>(control.data());
    segment->cmsg_level = IPPROTO_UDP;
    segment->cmsg_type = UDP_SEGMENT;
    segment->cmsg_len = CMSG_LEN(sizeof(uint16_t));
    const auto size = static_cast<uint16_t>(parts[0].iov_len);
    std::memcpy(CMSG_DATA(segment), &size, sizeof size);
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
};

/// Returns the properties of the frame's opcode; null if the opcode is unknown.
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

/// Moves acknowledgements at the beginning of the queue behind the requests after them, so that
/// both can share a datagram, in which only the last frame may be shorter. Requests may overtake
/// acknowledgements, which belong to the other direction. Responses may not, since a responder
/// answers requests in order.
void UdpSender::put_acknowledgements_last() {
  const auto first = queue_.begin() + static_cast<ptrdiff_t>(next_);
  const auto others = std::find_if_not(first, queue_.end(), is_acknowledgement);
  if (queue_.size() - next_ > kMaxSegments || !std::all_of(others, queue_.end(), is_request)) {
    return;
  }
  std::rotate(first, others, queue_.end());
}

UdpSendSocket* UdpSender::socket_of(const engine::Frame& frame) {
  const Outline outline(frame.bytes());
  const auto port = std::ranges::find(sockets_.source_ports, outline.source_port());
  const auto endpoint =
      std::ranges::find(sockets_.endpoints, outline.source(), &UdpEndpoint::address);
  if (port == sockets_.source_ports.end() || endpoint == sockets_.endpoints.end()) return nullptr;
  return &endpoint->send[static_cast<size_t>(port - sockets_.source_ports.begin())];
}

/// Returns the number of frames of the size of frame `first` for which a datagram has space.
size_t UdpSender::max_frames(size_t first) const {
  const Outline head(queue_[first].bytes());
  return can_segment_ ? std::min(kMaxSegments, kMaxBytes / head.payload_size()) : 1;
}

/// Returns whether the datagram should not wait for later frames: another frame waits behind it, or
/// it has space for few. The packets of a WRITE of 64 KiB fill two datagrams of 2 and 14 frames,
/// and the first one of the next WRITE fits into neither.
bool UdpSender::is_full(const Bundle& bundle) const {
  return bundle.first + bundle.count < queue_.size() ||
         bundle.count >= max_frames(bundle.first) - max_frames(bundle.first) / 8;
}

/// Returns the number of frames, beginning with `first`, that can leave as one datagram: all have
/// the same size, except that the last may be shorter.
size_t UdpSender::bundle_size(size_t first) const {
  if (!can_segment_) return 1;
  const Outline head(queue_[first].bytes());
  const size_t size = head.payload_size();
  const size_t most = std::min(max_frames(first), queue_.size() - first);
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

/// Finds the next datagrams that one system call can send. If `only_full` is true, finds only full
/// datagrams.
size_t UdpSender::find_bundles(bool only_full, std::span<Bundle, kMaxBundles> bundles) const {
  const Outline head(queue_[next_].bytes());
  size_t count = 0;
  for (size_t at = next_; at < queue_.size() && count < kMaxBundles; at += bundles[count++].count) {
    if (!Outline(queue_[at].bytes()).leaves_like(head)) break;
    bundles[count] = {at, bundle_size(at)};
    if (only_full && !is_full(bundles[count])) break;
  }
  return count;
}

/// Sends the bundles. Returns the number of bundles that were sent, or a negative errno value if
/// none was.
int UdpSender::send(UdpSendSocket& socket, std::span<const Bundle> bundles) {
  const Outline head(queue_[bundles[0].first].bytes());
  if (!socket.set_headers(head.is_v4, head.traffic_class(), head.hop_limit())) return -errno;
  std::array<Datagram, kMaxBundles> messages;
  std::array<mmsghdr, kMaxBundles> headers;
  for (size_t i = 0; i < bundles.size(); ++i) {
    messages[i].fill(std::span(queue_).subspan(bundles[i].first, bundles[i].count),
                     sockets_.interface.index, headers[i].msg_hdr);
  }
  int sent;
  do {
    ++counters_.sends;
    sent = sendmmsg(socket.fd.get(), headers.data(), static_cast<unsigned>(bundles.size()),
                    MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? -errno : sent;
}

/// Sends the next datagrams. Returns -1, or the socket for which the caller must wait.
int UdpSender::send_next(bool only_full) {
  std::array<Bundle, kMaxBundles> bundles;
  size_t count = find_bundles(only_full, bundles);
  UdpSendSocket* socket = socket_of(queue_[next_]);
  for (bool again = false;;) {
    const int sent =
        socket != nullptr ? send(*socket, std::span(bundles).first(count)) : -EADDRNOTAVAIL;
    if (sent > 0) {
      for (size_t i = 0; i < static_cast<size_t>(sent); ++i) done_with(bundles[i].count);
      return -1;
    }
    const int error = -sent;
    if (error == EAGAIN) {
      forget_sent();
      return socket->fd.get();
    }
    size_t& frames = bundles[0].count;
    // EIO means that the interface cannot compute checksums, and EINVAL that a packet is larger
    // than the interface's MTU.
    if (frames > 1 && (error == EIO || error == EINVAL || error == EMSGSIZE)) {
      if (error == EIO) can_segment_ = false;
      frames = count = 1;
      continue;
    }
    if (!std::exchange(again, true) && socket != nullptr) {
      // The error may be that of an earlier datagram. Reading the socket's errors clears it.
      const uint64_t before = counters_.icmp_errors;
      read_errors(socket->fd.get());
      if (counters_.icmp_errors != before) continue;
    }
    count_failure(error, frames);
    done_with(frames);
    return -1;
  }
}

/// Releases frames that were sent. Their buffers are still in the caches, and are used for the next
/// frames.
void UdpSender::done_with(size_t count) {
  for (size_t i = 0; i < count; ++i) queue_[next_++] = {};
}

void UdpSender::forget_sent() {
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(next_));
  next_ = 0;
}

int UdpSender::flush() {
  while (!is_empty()) {
    if (const int full = send_next(false); full >= 0) return full;
  }
  clear();
  return -1;
}

int UdpSender::flush_full() {
  while (!is_empty() && has_full()) {
    if (const int full = send_next(true); full >= 0) return full;
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
