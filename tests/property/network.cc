#include "tests/property/network.h"

#include "wire/packet.h"

namespace rocemu::property {
namespace {

using namespace std::chrono_literals;

constexpr engine::Duration kLatency = 10us;
constexpr engine::Duration kMaxDelay = 100us;
constexpr uint32_t kLossesOfOnePacket = 2;

/// Returns the frame's destination QP and PSN.
std::pair<uint32_t, uint32_t> name_of(std::span<const uint8_t> frame) {
  const auto packet = wire::parse_frame(frame);
  return {packet->bth.dest_qpn, packet->bth.psn.value()};
}

}  // namespace

void Network::send(engine::Instant now, uint32_t from, std::span<const uint8_t> frame) {
  ++frames;
  if (chance(link_.loss) && losses_[name_of(frame)]++ < kLossesOfOnePacket) {
    ++lost;
    return;
  }
  deliver(now, 1 - from, frame);
  if (chance(link_.doubling)) deliver(now, 1 - from, frame);
}

void Network::deliver(engine::Instant now, uint32_t to, std::span<const uint8_t> frame) {
  engine::Duration delay = kLatency;
  if (chance(link_.lateness)) {
    delay += engine::Duration(static_cast<int64_t>(random_.next() % kMaxDelay.count()));
  }
  under_way_.emplace(now + delay, Arrival{to, {frame.begin(), frame.end()}});
}

Network::Arrival Network::take() {
  Arrival arrival = std::move(under_way_.begin()->second);
  under_way_.erase(under_way_.begin());
  return arrival;
}

}  // namespace rocemu::property
