#include "emulator/timeline/reading/read_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "emulator/capture/pcap_reader.h"
#include "emulator/timeline/reading/capture_repeats.h"
#include "emulator/timeline/reading/frame_follower.h"
#include "wire/cm/mad.h"
#include "wire/opcode.h"

namespace rocemu::timeline {
namespace {

/// Returns the bytes of the packet. Bytes that the capture does not have are zeros.
std::vector<uint8_t> restored(const capture::CapturedPacket& packet) {
  std::vector<uint8_t> ip(packet.ip.begin(), packet.ip.end());
  if (packet.size > packet.bytes.size()) ip.resize(ip.size() + packet.size - packet.bytes.size());
  return ip;
}

constexpr size_t kEthernetHeader = 14;  // payload_offset() counts it

/// Returns whether the capture has only the beginning of the packet, in which headers are missing.
bool lacks_headers(const capture::CapturedPacket& packet, const wire::Packet& parsed) {
  return packet.size > packet.bytes.size() &&
         packet.ip.size() + kEthernetHeader < wire::payload_offset(parsed);
}

/// Returns a description of how the frame violates RoCEv2.
std::string in_words(wire::ParseError error) {
  const std::string name(wire::name(error));
  switch (error) {
    case wire::ParseError::kNotIp:
      return "neither IPv4 nor IPv6, such as ARP (" + name + ")";
    case wire::ParseError::kNotUdp:
      return "IP, but not UDP (" + name + ")";
    case wire::ParseError::kNotRoce:
      return "UDP to another port than 4791 (" + name + ")";
    case wire::ParseError::kFragmented:
      return "IP fragments, which RoCEv2 never has (" + name + ")";
    case wire::ParseError::kBadIpChecksum:
      return "a wrong checksum in the IP header (" + name + ")";
    case wire::ParseError::kUnknownOpcode:
      return "an opcode that RoCEv2 does not have (" + name + ")";
    default:
      return wire::is_truncation(error) ? "shorter than its headers (" + name + ")"
                                        : "malformed (" + name + ")";
  }
}

bool is_of_connection(const wire::Packet& packet) {
  const wire::OpcodeInfo* info = wire::find_opcode(packet.bth.opcode);
  return info != nullptr && info->transport != wire::Transport::kUd &&
         info->transport != wire::Transport::kCnp && packet.bth.dest_qpn > wire::kGsiQpn;
}

/// Pairs the QPs of each two addresses, because a connection's frame does not contain the QPN of
/// its sender. The QPs that receive frames are paired in the order of their numbers, which is the
/// order of their creation at both ends. If the capture has messages of the connection manager,
/// they correct wrong pairs.
void pair_qps(const std::map<std::pair<std::string, std::string>, std::set<uint32_t>>& heard,
              FrameFollower& frames) {
  for (const auto& [way, there] : heard) {
    const auto back = heard.find({way.second, way.first});
    if (back == heard.end() || way.first > way.second) continue;
    auto here = back->second.begin();
    for (const uint32_t qpn : there) {
      if (here == back->second.end()) break;
      frames.set_peer({way.second, qpn}, {way.first, *here++});
    }
  }
}

}  // namespace

Timeline read_capture(const std::string& path) {
  Timeline timeline;
  timeline.source = path;
  FrameFollower frames(timeline);
  CaptureRepeats repeats;
  std::map<std::pair<std::string, std::string>, std::set<uint32_t>> heard;  // by sender, receiver
  capture::read_pcap(path, [&](const capture::CapturedPacket& packet) {
    const std::vector<uint8_t> ip = restored(packet);
    const auto parsed = wire::parse_datagram(ip);
    if (!parsed || !is_of_connection(*parsed)) return;
    heard[{wire::to_string(parsed->src_ip), wire::to_string(parsed->dst_ip)}].insert(
        parsed->bth.dest_qpn);
  });
  pair_qps(heard, frames);

  std::optional<std::chrono::nanoseconds> start;
  std::map<std::string, uint64_t> skipped;
  const std::string cut_off = "the capture's snap length cut off their headers";
  const std::string ended = capture::read_pcap(path, [&](const capture::CapturedPacket& packet) {
    if (!start) {
      start = packet.at;
      timeline.wall_start_ns = packet.at.count();
    }
    const std::vector<uint8_t> ip = restored(packet);
    const auto parsed = ip.empty() ? wire::Result<wire::Packet>(wire::ParseError::kNotIp)
                                   : wire::parse_datagram(ip);
    if (!parsed) {
      const bool is_cut = packet.size > packet.bytes.size();
      ++skipped[is_cut ? cut_off : in_words(parsed.error())];
      return;
    }
    if (lacks_headers(packet, *parsed)) {
      ++skipped[cut_off];
      return;
    }
    const engine::Instant at(std::max(packet.at - *start, std::chrono::nanoseconds(0)));
    Happening& frame =
        frames.add(at, *parsed, {packet.bytes.begin(), packet.bytes.end()}, packet.size);
    repeats.look_at(*parsed, frame);
  });
  for (const auto& [reason, count] : skipped) {
    timeline.notes.push_back(
        fmt::format("{} frame{} skipped: {}", count, count == 1 ? "" : "s", reason));
  }
  if (timeline.happenings.empty()) timeline.notes.push_back("there is no RoCEv2 frame in " + path);
  if (!ended.empty()) timeline.notes.push_back(ended + "; only the part before is shown");
  return timeline;
}

}  // namespace rocemu::timeline
