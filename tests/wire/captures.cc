#include "tests/wire/captures.h"

#include <pcap/pcap.h>

#include <algorithm>
#include <filesystem>

namespace rocemu::wire {
namespace {

Capture read_capture(const std::filesystem::path& path) {
  Capture capture{.name = path.filename().string(), .frames = {}};
  char error[PCAP_ERRBUF_SIZE];
  pcap_t* pcap = pcap_open_offline(path.c_str(), error);
  if (pcap == nullptr) {
    ADD_FAILURE() << path << ": " << error;
    return capture;
  }
  EXPECT_EQ(pcap_datalink(pcap), DLT_EN10MB) << path;
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  int status = 0;
  while ((status = pcap_next_ex(pcap, &header, &bytes)) == 1) {
    EXPECT_EQ(header->caplen, header->len) << path << ": a frame was cut short by the capture";
    capture.frames.emplace_back(bytes, bytes + header->caplen);
  }
  EXPECT_EQ(status, PCAP_ERROR_BREAK) << path << ": " << pcap_geterr(pcap);
  pcap_close(pcap);
  return capture;
}

std::vector<Capture> read_captures() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(ROCEMU_TEST_DATA "/rxe")) {
    if (entry.path().extension() == ".pcap") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Capture> captures;
  for (const auto& path : paths) captures.push_back(read_capture(path));
  return captures;
}

}  // namespace

const std::vector<Capture>& rxe_captures() {
  static const std::vector<Capture> captures = read_captures();
  return captures;
}

const std::vector<ByteVector>& rxe_roce_frames() {
  static const std::vector<ByteVector> roce_frames = [] {
    std::vector<ByteVector> frames;
    for (const Capture& capture : rxe_captures()) {
      for (size_t i = 0; i < capture.frames.size(); ++i) {
        if (capture.name == kBadIcrcCapture && i == kBadIcrcFrame) continue;
        if (parse_frame(capture.frames[i])) frames.push_back(capture.frames[i]);
      }
    }
    return frames;
  }();
  return roce_frames;
}

}  // namespace rocemu::wire
