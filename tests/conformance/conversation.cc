#include "tests/conformance/conversation.h"

#include <pcap/pcap.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

namespace rocemu::conformance {
namespace {

namespace fs = std::filesystem;

std::vector<CapturedFrame> read_frames(const fs::path& path) {
  char error[PCAP_ERRBUF_SIZE];
  pcap_t* pcap =
      pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, error);
  if (pcap == nullptr) throw std::runtime_error(path.string() + ": " + error);
  std::vector<CapturedFrame> frames;
  std::optional<engine::Duration> start;
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  while (pcap_next_ex(pcap, &header, &bytes) == 1) {
    const engine::Duration at =
        std::chrono::seconds(header->ts.tv_sec) + std::chrono::nanoseconds(header->ts.tv_usec);
    if (!start) start = at;
    CapturedFrame frame{.at = at - *start, .bytes = {bytes, bytes + header->caplen}, .packet = {}};
    const auto packet = wire::parse_frame(frame.bytes);
    if (!packet) continue;  // a frame of another protocol
    frame.packet = *packet;
    frames.push_back(std::move(frame));
  }
  pcap_close(pcap);
  return frames;
}

bool is_of_a_pair(const CapturedFrame& frame) {
  constexpr uint32_t kCmQpn = 1, kMulticastQpn = 0xffffff;
  return frame.packet.bth.dest_qpn != kCmQpn && frame.packet.bth.dest_qpn != kMulticastQpn &&
         frame.info().transport != wire::Transport::kCnp;
}

/// Returns the largest payload of a packet that is not the last of its message.
uint32_t find_mtu(const std::vector<CapturedFrame>& frames) {
  uint32_t mtu = 0;
  for (const CapturedFrame& frame : frames) {
    if (!frame.info().is_last)
      mtu = std::max(mtu, static_cast<uint32_t>(frame.packet.payload.size()));
  }
  return mtu != 0 ? mtu : 1024;
}

/// Both ends number their QPs in the same way, so the n-th QP of one end is connected to the n-th
/// QP of the other.
std::vector<Conversation> split(const std::string& name, std::vector<CapturedFrame> frames) {
  std::map<wire::IpAddress, std::set<uint32_t>> qpns;  // the QP numbers of each address
  std::set<wire::IpAddress> addresses;
  for (const CapturedFrame& frame : frames) {
    qpns[frame.packet.dst_ip].insert(frame.packet.bth.dest_qpn);
    addresses.insert({frame.packet.src_ip, frame.packet.dst_ip});
  }
  if (addresses.size() != 2) return {};
  const wire::IpAddress a = *addresses.begin(), b = *addresses.rbegin();
  std::vector<Conversation> conversations(std::max(qpns[a].size(), qpns[b].size()));
  for (size_t i = 0; i < conversations.size(); ++i) {
    const auto nth = [i](const std::set<uint32_t>& of) {
      return i < of.size() ? *std::next(of.begin(), static_cast<std::ptrdiff_t>(i)) : 0;
    };
    Conversation& one = conversations[i];
    one.capture = name;
    one.ends[0] = {a, nth(qpns[a])};
    one.ends[1] = {b, nth(qpns[b])};
  }
  for (CapturedFrame& frame : frames) {
    for (Conversation& one : conversations) {
      const End& to = one.ends[frame.packet.dst_ip == a ? 0 : 1];
      if (to.qpn != frame.packet.bth.dest_qpn) continue;
      one.transport = frame.info().transport;
      one.frames.push_back(std::move(frame));
      break;
    }
  }
  for (Conversation& one : conversations) one.mtu = find_mtu(one.frames);
  return conversations;
}

}  // namespace

std::vector<Conversation> read_conversations() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(ROCEMU_TEST_DATA "/rxe")) {
    if (entry.path().extension() == ".pcap") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Conversation> all;
  for (const fs::path& path : paths) {
    std::vector<CapturedFrame> frames = read_frames(path);
    std::erase_if(frames, [](const CapturedFrame& frame) { return !is_of_a_pair(frame); });
    for (Conversation& one : split(path.stem().string(), std::move(frames))) {
      all.push_back(std::move(one));
    }
  }
  return all;
}

}  // namespace rocemu::conformance
