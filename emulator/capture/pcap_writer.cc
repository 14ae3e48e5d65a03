#include "emulator/capture/pcap_writer.h"

#include <pcap/pcap.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "wire/udp_checksum.h"

namespace rocemu::capture {
namespace {

constexpr size_t kHandOver = 1 << 20;

/// What libpcap writes, a frame's header and the frame by themselves, goes into a buffer of ours.
std::FILE* open_buffer(std::vector<std::byte>& buffer) {
  const auto append = [](void* to, const char* bytes, size_t size) {
    const auto* begin = reinterpret_cast<const std::byte*>(bytes);
    auto& all = *static_cast<std::vector<std::byte>*>(to);
    all.insert(all.end(), begin, begin + size);
    return static_cast<ssize_t>(size);
  };
  std::FILE* file = fopencookie(&buffer, "w", {nullptr, append, nullptr, nullptr});
  if (file != nullptr) std::setvbuf(file, nullptr, _IONBF, 0);
  return file;
}

}  // namespace

PcapWriter::PcapWriter(CaptureFile opened, std::chrono::system_clock::time_point start,
                       SlowReader slow_reader, CaptureLimits limits)
    : name_(std::move(opened.name)),
      slow_reader_(slow_reader),
      limits_(limits),
      disk_(std::move(opened.fd)),
      start_(std::chrono::duration_cast<std::chrono::nanoseconds>(start.time_since_epoch())),
      format_(pcap_open_dead_with_tstamp_precision(DLT_EN10MB, static_cast<int>(limits.snap_length),
                                                   PCAP_TSTAMP_PRECISION_NANO)) {
  // Opened by us: libpcap takes "-" for standard output, words its errors in several ways, and
  // would wait for the disk.
  if (!opened.error.empty()) {
    error_ = opened.error;
    return;
  }
  std::FILE* file = open_buffer(unwritten_);
  if (file != nullptr) file_ = pcap_dump_fopen(format_, file);
  if (file_ == nullptr) {
    if (file != nullptr) std::fclose(file);
    fail(ENOMEM);
    return;
  }
  flush();  // a full disk is known at once, and a reader finds a valid file
}

PcapWriter::~PcapWriter() {
  write_ring();
  flush();
  if (file_ != nullptr) pcap_dump_close(file_);
  if (format_ != nullptr) pcap_close(format_);
}

bool PcapWriter::write(engine::Instant at, std::span<const uint8_t> frame) {
  if (file_ == nullptr) return true;
  constexpr int64_t kBillion = 1'000'000'000;
  const int64_t time = (start_ + at.time_since_epoch()).count();
  pcap_pkthdr header{};
  header.ts.tv_sec = static_cast<time_t>(time / kBillion);
  header.ts.tv_usec = static_cast<suseconds_t>(time % kBillion);  // nanoseconds, by the precision
  header.caplen = static_cast<bpf_u_int32>(std::min(frame.size(), limits_.snap_length));
  header.len = static_cast<bpf_u_int32>(frame.size());
  pcap_dump(reinterpret_cast<u_char*>(file_), &header, frame.data());
  complete(frame, header.caplen);
  if (limits_.last_frames != 0) {
    ring_.push_back(std::exchange(unwritten_, {}));
    if (ring_.size() > limits_.last_frames) ring_.pop_front();
    return true;
  }
  ++unwritten_frames_;
  return unwritten_.size() < kHandOver || flush();
}

// UDP checksums are left out where no reader sees them, as ICRCs are.
void PcapWriter::complete(std::span<const uint8_t> frame, size_t kept) {
  const auto checksum = wire::missing_udp_checksum(frame);
  if (!checksum || kept < wire::kIpv6UdpChecksumAt + 2) return;
  std::byte* const at = unwritten_.data() + unwritten_.size() - kept + wire::kIpv6UdpChecksumAt;
  at[0] = static_cast<std::byte>(*checksum >> 8);
  at[1] = static_cast<std::byte>(*checksum & 0xff);
}

bool PcapWriter::flush() {
  if (file_ == nullptr || unwritten_.empty()) return true;
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
    if (file_ == nullptr) return true;
    unwritten_.insert(unwritten_.end(), frame.begin(), frame.end());
    ++unwritten_frames_;
    if (unwritten_.size() >= kHandOver && !flush()) return false;
  }
  return true;
}

bool PcapWriter::finish() {
  if (file_ == nullptr) return true;
  if (!write_ring()) return false;
  using Patience = BackgroundFile::Patience;
  const auto patience =
      slow_reader_ == SlowReader::kIsWaitedFor ? Patience::kEndless : Patience::kLimited;
  return flush() && (disk_.sync(patience) || fail(disk_.error()));
}

bool PcapWriter::fail(int error) {
  const char* const reason = error == EPIPE       ? "its reader has gone"
                             : error == ETIMEDOUT ? "its reader takes no more"
                                                  : std::strerror(error);
  error_ = "cannot write the capture " + name_ + ": " + reason;
  if (file_ != nullptr) pcap_dump_close(file_);
  file_ = nullptr;
  return false;
}

}  // namespace rocemu::capture
