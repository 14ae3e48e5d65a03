#include "emulator/capture/pcap_writer.h"

#include <pcap/pcap.h>

#include <cerrno>
#include <cstring>

namespace rocemu::capture {
namespace {

constexpr int kSnapshotLength = 65535;
constexpr size_t kBufferSize = 256 * 1024;  // else each frame of full size is a system call

}  // namespace

PcapWriter::PcapWriter(const std::string& path, std::chrono::system_clock::time_point start)
    : path_(path),
      start_(std::chrono::duration_cast<std::chrono::nanoseconds>(start.time_since_epoch())),
      format_(pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kSnapshotLength,
                                                   PCAP_TSTAMP_PRECISION_NANO)) {
  // Opened by us: libpcap takes "-" for standard output, and words its errors in several ways.
  std::FILE* file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) {
    error_ = "cannot write the capture " + path + ": " + std::strerror(errno);
    return;
  }
  std::setvbuf(file, nullptr, _IOFBF, kBufferSize);
  file_ = pcap_dump_fopen(format_, file);
  if (file_ == nullptr) {
    error_ = "cannot write the capture " + path + ": " + pcap_geterr(format_);
    std::fclose(file);
    return;
  }
  unflushed_ = true;
  flush();  // a full disk is known at once, and a reader finds a valid file
}

PcapWriter::~PcapWriter() {
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
  header.caplen = static_cast<bpf_u_int32>(frame.size());
  header.len = header.caplen;
  pcap_dump(reinterpret_cast<u_char*>(file_), &header, frame.data());
  unflushed_ = true;
  return std::ferror(pcap_dump_file(file_)) == 0 || fail();
}

bool PcapWriter::flush() {
  if (file_ == nullptr || !unflushed_) return true;
  unflushed_ = false;
  return pcap_dump_flush(file_) == 0 || fail();
}

bool PcapWriter::fail() {
  error_ = "cannot write the capture " + path_ + ": " + std::strerror(errno);
  pcap_dump_close(file_);
  file_ = nullptr;
  return false;
}

}  // namespace rocemu::capture
