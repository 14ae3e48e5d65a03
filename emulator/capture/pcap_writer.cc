#include "emulator/capture/pcap_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "wire/udp_checksum.h"

namespace rocemu::capture {
namespace {

constexpr size_t kHandOver = 1 << 20;

// In a pcap file, numbers have the byte order of the machine that writes the file
// (pcap-savefile(5)).
struct FileHeader {
  uint32_t magic = 0xa1b23c4d;  // times in nanoseconds
  uint16_t major_version = 2, minor_version = 4;
  uint32_t reserved[2] = {};
  uint32_t snap_length;
  uint32_t link_type = 1;  // LINKTYPE_ETHERNET
};
static_assert(sizeof(FileHeader) == 24);

struct FrameHeader {
  uint32_t seconds, nanoseconds;
  uint32_t kept, size;  // bytes of the frame in the file, and on the wire
};
static_assert(sizeof(FrameHeader) == 16);

template <class Value>
std::span<const std::byte> bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}

void append(std::vector<std::byte>& buffer, std::span<const std::byte> bytes) {
  buffer.insert(buffer.end(), bytes.begin(), bytes.end());
}

}  // namespace

PcapWriter::PcapWriter(CaptureFile opened, std::chrono::system_clock::time_point start,
                       SlowReader slow_reader, CaptureLimits limits)
    : name_(std::move(opened.name)),
      slow_reader_(slow_reader),
      limits_(limits),
      disk_(std::move(opened.fd)),
      start_(std::chrono::duration_cast<std::chrono::nanoseconds>(start.time_since_epoch())) {
  if (!opened.error.empty()) {
    error_ = opened.error;
    return;
  }
  is_open_ = true;
  append(unwritten_,
         bytes_of(FileHeader{.snap_length = static_cast<uint32_t>(limits.snap_length)}));
  flush();  // reports a full disk at once, and gives readers a valid file
}

PcapWriter::~PcapWriter() {
  write_ring();
  flush();
}

bool PcapWriter::write(engine::Instant at, std::span<const uint8_t> frame) {
  if (!is_open_) return true;
  constexpr int64_t kBillion = 1'000'000'000;
  const int64_t time = (start_ + at.time_since_epoch()).count();
  const auto whole = std::as_bytes(frame);
  const auto kept = whole.first(std::min(whole.size(), limits_.snap_length));
  append(unwritten_, bytes_of(FrameHeader{.seconds = static_cast<uint32_t>(time / kBillion),
                                          .nanoseconds = static_cast<uint32_t>(time % kBillion),
                                          .kept = static_cast<uint32_t>(kept.size()),
                                          .size = static_cast<uint32_t>(whole.size())}));
  append(unwritten_, kept);
  complete(frame, kept.size());
  if (limits_.last_frames != 0) {
    ring_.push_back(std::exchange(unwritten_, {}));
    if (ring_.size() > limits_.last_frames) ring_.pop_front();
    return true;
  }
  ++unwritten_frames_;
  return unwritten_.size() < kHandOver || flush();
}

// Adds the UDP checksum if a frame over IPv6 has 0 instead, which receivers of RoCEv2 accept but
// analyzers report as illegal (wire/udp_checksum.h).
void PcapWriter::complete(std::span<const uint8_t> frame, size_t kept) {
  const auto checksum = wire::missing_udp_checksum(frame);
  if (!checksum || kept < wire::kIpv6UdpChecksumAt + 2) return;
  std::byte* const at = unwritten_.data() + unwritten_.size() - kept + wire::kIpv6UdpChecksumAt;
  at[0] = static_cast<std::byte>(*checksum >> 8);
  at[1] = static_cast<std::byte>(*checksum & 0xff);
}

bool PcapWriter::flush() {
  if (!is_open_ || unwritten_.empty()) return true;
  const uint64_t frames = std::exchange(unwritten_frames_, 0);
  if (slow_reader_ == SlowReader::kIsWaitedFor || disk_.has_room()) {
    return disk_.write(unwritten_) || fail(disk_.error());
  }
  lost_frames_ += frames;
  unwritten_.clear();
  return true;
}

bool PcapWriter::write_ring() {
  for (const std::vector<std::byte>& frame : std::exchange(ring_, {})) {
    if (!is_open_) return true;
    unwritten_.insert(unwritten_.end(), frame.begin(), frame.end());
    ++unwritten_frames_;
    if (unwritten_.size() >= kHandOver && !flush()) return false;
  }
  return true;
}

bool PcapWriter::finish() {
  if (!is_open_) return true;
  if (!write_ring()) return false;
  using Patience = BackgroundFile::Patience;
  const auto patience =
      slow_reader_ == SlowReader::kIsWaitedFor ? Patience::kEndless : Patience::kLimited;
  return flush() && (disk_.sync(patience) || fail(disk_.error()));
}

bool PcapWriter::fail(int error) {
  const char* const reason = error == EPIPE       ? "its reader has exited"
                             : error == ETIMEDOUT ? "its reader has stopped reading"
                                                  : std::strerror(error);
  error_ = "cannot write the capture " + name_ + ": " + reason;
  is_open_ = false;
  return false;
}

}  // namespace rocemu::capture
