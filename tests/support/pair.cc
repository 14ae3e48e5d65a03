#include "tests/support/pair.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rocemu::test {
namespace {

constexpr wire::IpAddress kLeft = wire::IpAddress::from_v4(10, 0, 0, 1);
constexpr wire::IpAddress kRight = wire::IpAddress::from_v4(10, 0, 0, 2);

engine::DeviceConfig device(const char* name, uint8_t number, const wire::IpAddress& address) {
  const wire::IpAddress ipv6{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number}};
  return {
      .name = name, .mac = {{2, 0, 0, 0, 0, number}}, .addresses = {address, ipv6}, .policy = {}};
}

engine::FabricConfig two_devices(const PairOptions& options) {
  engine::FabricConfig config;
  config.devices = {device("left", 1, kLeft), device("right", 2, kRight)};
  config.trace_frames = options.trace_frames;
  config.link_latency = options.link_latency;
  config.network = options.network;
  return config;
}

engine::FabricConfig one(const char* name, uint8_t number, const wire::IpAddress& address) {
  engine::FabricConfig config;
  config.devices = {device(name, number, address)};
  return config;
}

abi::AhAttr without_grh() {
  abi::AhAttr attr{};
  attr.dlid = 1;
  attr.port_num = 1;
  return attr;
}

}  // namespace

bool is_kind(FrameKind kind, std::span<const uint8_t> frame) {
  if (kind == FrameKind::kAny) return true;
  const auto packet = wire::parse_frame(frame);
  if (!packet) return false;
  const bool response = wire::find_opcode(packet->bth.opcode)->is_response;
  if (!response) return kind == FrameKind::kRequest;
  const bool positive = wire::aeth_kind(packet->aeth.syndrome) == wire::AethKind::kAck;
  return kind == (positive ? FrameKind::kAck : FrameKind::kNak);
}

std::vector<abi::Cqe> completions_of(const std::vector<Timed>& log, engine::ClientId client) {
  std::vector<abi::Cqe> out;
  for (const Timed& entry : log) {
    const auto* completion = std::get_if<engine::Completion>(&entry.output);
    if (completion != nullptr && completion->client == client) out.push_back(completion->cqe);
  }
  return out;
}

Pair::Pair(const PairOptions& options)
    : bench(two_devices(options), options.observer),
      left(bench, engine::ClientId{1}, engine::DeviceIndex{0}, options.left),
      right(bench, engine::ClientId{2}, engine::DeviceIndex{options.same_device ? 0u : 1u},
            options.right) {
  const auto to_left = options.without_grh ? without_grh() : address_vector(kLeft);
  const auto to_right =
      options.without_grh ? without_grh() : address_vector(options.same_device ? kLeft : kRight);
  EXPECT_TRUE(
      bring_up(left.client, left.qpn, options.state, options.left.connection, to_right, right.qpn));
  EXPECT_TRUE(bring_up(right.client, right.qpn, options.state, options.right.connection, to_left,
                       left.qpn));
}

std::vector<abi::Cqe> Pair::take(engine::ClientId client) {
  auto out = completions_of(bench.log, client);
  std::erase_if(bench.log, [&](const Timed& entry) {
    const auto* completion = std::get_if<engine::Completion>(&entry.output);
    return completion != nullptr && completion->client == client;
  });
  return out;
}

JoinedPair::JoinedPair(const EndpointOptions& left_options, const EndpointOptions& right_options)
    : left_bench(one("left", 1, kLeft)),
      right_bench(one("right", 2, kRight)),
      left(left_bench, engine::ClientId{1}, engine::DeviceIndex{0}, left_options),
      right(right_bench, engine::ClientId{1}, engine::DeviceIndex{0}, right_options) {
  EXPECT_TRUE(bring_up(left.client, left.qpn, abi::QpState::kRts, left_options.connection,
                       address_vector(kRight), right.qpn));
  EXPECT_TRUE(bring_up(right.client, right.qpn, abi::QpState::kRts, right_options.connection,
                       address_vector(kLeft), left.qpn));
}

void JoinedPair::deliver(Bench& to, const Bytes& frame) {
  ++frames_carried;
  to.step(engine::ReceivedFrame{engine::DeviceIndex{0}, frame});
}

// Moves frames from one side to the other. Returns whether any frame was in flight.
bool JoinedPair::move(Bench& from, Bench& to, std::vector<Bytes>& held,
                      std::vector<abi::Cqe>& done) {
  const std::vector<Timed> log = std::exchange(from.log, {});
  for (const Timed& entry : log) {
    if (const auto* completion = std::get_if<engine::Completion>(&entry.output)) {
      done.push_back(completion->cqe);
    }
    const auto* sent = std::get_if<engine::TransmitFrame>(&entry.output);
    if (sent == nullptr) continue;
    const auto view = sent->frame.bytes();
    Bytes frame(view.begin(), view.end());
    const std::vector<Bytes> released = std::exchange(held, {});
    const auto pending = std::find_if(faults_.begin(), faults_.end(),
                                      [&](const Pending& one) { return is_kind(one.kind, frame); });
    int count = copies ? copies(frame) : 1;
    if (pending != faults_.end()) {
      const Fault fault = pending->fault;
      faults_.erase(pending);
      switch (fault) {
        case Fault::kDrop:
          count = 0;
          break;
        case Fault::kDuplicate:
          count = 2;
          break;
        case Fault::kDelay:
          held.push_back(frame);
          count = 0;
          break;
        case Fault::kCorrupt:
          frame[frame.size() - 6] ^= 0x10;
          break;
      }
    }
    for (int i = 0; i < count; ++i) deliver(to, frame);
    for (const Bytes& late : released) deliver(to, late);
  }
  return !log.empty();
}

void JoinedPair::settle() {
  bool busy = true;
  while (busy) {
    busy = move(left_bench, right_bench, held_left_, left_done_);
    busy = move(right_bench, left_bench, held_right_, right_done_) || busy;
  }
}

void JoinedPair::run_until(engine::Duration time) {
  const engine::Instant end{time};
  settle();
  for (;;) {
    const auto a = left_bench.engine().next_deadline();
    const auto b = right_bench.engine().next_deadline();
    engine::Instant next = end;
    if (a) next = std::min(next, *a);
    if (b) next = std::min(next, *b);
    left_bench.advance_to(next.time_since_epoch());
    right_bench.advance_to(next.time_since_epoch());
    settle();
    if (next == end) return;
  }
}

}  // namespace rocemu::test
