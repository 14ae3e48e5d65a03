#include "tests/support/script.h"

#include <gtest/gtest.h>

#include <sstream>

namespace rocemu::test {
namespace {

constexpr wire::IpAddress kDevice4 = wire::IpAddress::from_v4(10, 0, 0, 1);
constexpr wire::IpAddress kPeer4 = wire::IpAddress::from_v4(10, 0, 0, 2);
constexpr wire::IpAddress kDevice6 = {{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
constexpr wire::IpAddress kPeer6 = {{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}};

engine::FabricConfig one_device(const ScriptOptions& options) {
  engine::FabricConfig config;
  config.devices.push_back({.name = "dut",
                            .mac = {{2, 0, 0, 0, 0, 1}},
                            .addresses = {kDevice4, kDevice6},
                            .policy = {}});
  config.devices[0].outside = options.outside;
  config.ack_coalescing = options.ack_coalescing;
  config.devices[0].source_ports = options.source_ports;
  config.trace_frames = options.trace_frames;
  return config;
}

std::string time_of(engine::Instant at) {
  std::ostringstream text;
  text << static_cast<double>(at.time_since_epoch().count()) / 1e6 << "ms";
  return text.str();
}

}  // namespace

Script::Script(const ScriptOptions& options, const char* file, int line)
    : file_(file),
      line_(line),
      options_(options),
      device_ip_(options.ipv6 ? kDevice6 : kDevice4),
      peer_ip_(options.ipv6 ? kPeer6 : kPeer4),
      bench_(one_device(options), options.observer),
      app_(bench_, engine::ClientId{1}, engine::DeviceIndex{0}, options) {
  app_connects(options.state, line);
  if (options.state != abi::QpState::kErr) check_silent(line, "while connecting");
  bench_.log.clear();
}

Script::~Script() {
  check_silent(line_, "at the script's end");
}

void Script::fail(int line, const std::string& text) const {
  ADD_FAILURE_AT(file_, line) << "at " << time_of(bench_.now()) << ": " << text;
}

void Script::check_silent(int line, const char* when) {
  for (const Timed& got : bench_.log) {
    fail(line, std::string("unexpected output ") + when + " (" + time_of(got.at) +
                   "): " + to_string(got.output));
  }
  bench_.log.clear();
}

void Script::check_frame(const engine::Frame& frame, int line) const {
  const auto packet = wire::parse_frame(frame.bytes());
  if (!packet) return fail(line, "frame does not parse");
  if (!wire::check_icrc(frame.bytes())) fail(line, "frame with a wrong ICRC");
  if (packet->src_ip != device_ip_ || packet->dst_ip != peer_ip_) {
    fail(line, "frame with wrong addresses: " + wire::to_string(*packet));
  }
  if (packet->bth.dest_qpn != kPeerQpn) fail(line, "frame for a QP that is not the peer");
  if (packet->bth.pad_count != (4 - packet->payload.size() % 4) % 4) fail(line, "wrong pad count");
}

Script& Script::at(engine::Duration time, int line) {
  line_ = line;
  check_silent(line, "before this line");
  if (engine::Instant(time) < bench_.now()) fail(line, "the script's time runs backwards");
  bench_.advance_to(time);
  return *this;
}

Script& Script::app_posts_send(uint64_t wr_id, uint32_t length, int line) {
  return app_posts({.wr_id = wr_id, .sges = {app_.send_sge(length)}}, line);
}

Script& Script::app_posts(const SendWr& wr, int line) {
  line_ = line;
  app_.post_send(wr);
  return *this;
}

Script& Script::app_posts_recv(uint64_t wr_id, uint32_t length, uint64_t offset, int line) {
  return app_posts_recv_list({.wr_id = wr_id, .sges = {app_.recv_sge(length, offset)}}, line);
}

Script& Script::app_posts_recv_list(const RecvWr& wr, int line) {
  line_ = line;
  app_.post_recv(wr);
  return *this;
}

Script& Script::app_sets_state(abi::QpState state, int line) {
  abi::QpAttr attr{};
  attr.qp_state = static_cast<uint32_t>(state);
  return app_modifies(attr, abi::kAttrState, line);
}

Script& Script::app_modifies(const abi::QpAttr& attr, uint32_t mask, int line) {
  line_ = line;
  if (const int error = app_.client.modify_qp(app_.qpn, attr, mask)) {
    fail(line, "modify_qp: error " + std::to_string(error));
  }
  return *this;
}

Script& Script::app_connects(abi::QpState to, int line) {
  line_ = line;
  const auto gid = static_cast<uint8_t>(options_.ipv6 ? 1 : 0);
  if (!bring_up(app_.client, app_.qpn, to, options_.connection, address_vector(peer_ip_, gid),
                kPeerQpn)) {
    fail(line, "the QP did not reach " + to_string(to));
  }
  return *this;
}

wire::Packet Script::addressed(const PacketSpec& spec) const {
  wire::Packet packet = spec.packet;
  packet.src_mac = {{2, 0, 0, 0, 0, 2}};
  packet.dst_mac = {{2, 0, 0, 0, 0, 1}};
  packet.src_ip = spec.src_ip.value_or(peer_ip_);
  packet.dst_ip = spec.dst_ip.value_or(device_ip_);
  packet.bth.dest_qpn = spec.qpn.value_or(app_.qpn);
  packet.aeth.msn = spec.msn.value_or(0);
  return packet;
}

std::vector<uint8_t> Script::frame(const PacketSpec& spec) const {
  const std::vector<uint8_t> payload = spec.payload.value_or(pattern(spec.length.value_or(0)));
  return frame_of(addressed(spec), payload);
}

Script& Script::wire_delivers(const PacketSpec& spec, int line) {
  return wire_delivers_bytes(frame(spec), line);
}

Script& Script::wire_delivers_burst(const std::vector<PacketSpec>& specs, int line) {
  line_ = line;
  std::vector<std::vector<uint8_t>> frames;
  for (const PacketSpec& spec : specs) frames.push_back(frame(spec));
  std::vector<engine::ReceivedFrame> burst;
  for (const auto& bytes : frames) burst.push_back({engine::DeviceIndex{0}, bytes});
  bench_.step(engine::ReceivedFrames{burst});
  return *this;
}

Script& Script::wire_delivers_bytes(std::span<const uint8_t> bytes, int line) {
  line_ = line;
  bench_.step(engine::ReceivedFrame{engine::DeviceIndex{0}, bytes});
  return *this;
}

Script& Script::expect_list(const std::vector<Expected>& outputs, int line) {
  line_ = line;
  const std::vector<Timed> got = std::exchange(bench_.log, {});
  for (size_t i = 0; i < std::max(got.size(), outputs.size()); ++i) {
    const std::string number = "output " + std::to_string(i) + ": ";
    if (i >= got.size()) {
      fail(line, number + "nothing came where this was expected: " + outputs[i].text);
      continue;
    }
    const auto* sent = std::get_if<engine::TransmitFrame>(&got[i].output);
    if (sent != nullptr) check_frame(sent->frame, line);
    if (i >= outputs.size()) {
      fail(line, number + "not expected: " + to_string(got[i].output));
      continue;
    }
    std::string wrong = outputs[i].mismatch(got[i].output);
    if (got[i].at != bench_.now()) wrong += "came at " + time_of(got[i].at);
    if (!wrong.empty()) {
      fail(line, number + "expected " + outputs[i].text + "\n  but got " +
                     to_string(got[i].output) + "\n  " + wrong);
    }
  }
  return *this;
}

Script& Script::expect_state(abi::QpState state, int line) {
  line_ = line;
  const abi::QpState is = app_.state();
  if (is != state) fail(line, "the QP is in " + to_string(is) + ", not " + to_string(state));
  return *this;
}

Script& Script::expect_counter(engine::Counter which, uint64_t value, int line) {
  line_ = line;
  const uint64_t is = counter(bench_.engine(), which);
  if (is != value) {
    fail(line, std::string(engine::name(which)) + " is " + std::to_string(is) + ", not " +
                   std::to_string(value));
  }
  return *this;
}

Script& Script::expect_received(const std::vector<uint8_t>& bytes, uint64_t offset, int line) {
  line_ = line;
  if (app_.recv_bytes(bytes.size(), offset) != bytes) {
    fail(line, "the receive buffer does not hold what was sent");
  }
  return *this;
}

}  // namespace rocemu::test
