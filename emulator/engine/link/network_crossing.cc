#include "emulator/engine/link/network_crossing.h"

#include <algorithm>

#include "emulator/engine/link/frame_on_wire.h"
#include "wire/packet.h"

namespace rocemu::engine {

NetworkCrossing::NetworkCrossing(const FabricConfig& config, FramePool& frames, Link& link,
                                 Step& step)
    : frames_(frames), link_(link), step_(step), has_icrcs_(config.trace_frames) {
  if (config.network == nullptr) return;
  network_ = config.network->build(config.seed);
  waiting_.resize(config.devices.size());
}

void NetworkCrossing::inject(Departure&& departure) {
  uint64_t token = under_way_.size();
  if (free_tokens_.empty()) {
    under_way_.emplace_back();
  } else {
    token = free_tokens_.back();
    free_tokens_.pop_back();
  }
  ++used_;
  Injection injection = injection_of(departure.frame);
  injection.token = token;
  injection.from = *departure.from;
  injection.to = *departure.to;
  injection.qp = departure.qp;
  under_way_[token] = {std::move(departure.frame), *departure.to, departure.check_icrc};
  network_->inject(injection, step_.now());
}

void NetworkCrossing::advance() {
  if (network_ != nullptr) network_->advance(step_.now(), *this);
}

std::optional<Instant> NetworkCrossing::next_event() const {
  return network_ != nullptr ? network_->next_event() : std::nullopt;
}

void NetworkCrossing::wait_for_room(DeviceIndex device, QpNumber qp) {
  waiting_[device.value].push_back(qp);
}

NetworkCrossing::UnderWay NetworkCrossing::take(uint64_t token) {
  --used_;
  free_tokens_.push_back(token);
  return std::move(under_way_[token]);
}

void NetworkCrossing::deliver(uint64_t token, Instant at, bool is_marked) {
  UnderWay arrived = take(token);
  if (is_marked) arrived.frame = marked_copy(frames_, arrived.frame);
  link_.push({at, arrived.to, std::move(arrived.frame), arrived.check_icrc, false});
}

void NetworkCrossing::resumed(DeviceIndex device) {
  std::vector<QpNumber>& waiting = waiting_[device.value];
  resumed_.insert(resumed_.end(), waiting.begin(), waiting.end());
  waiting.clear();
}

void NetworkCrossing::capture(uint32_t capture, uint64_t token, Instant at, bool is_marked,
                              uint8_t ttl) {
  const UnderWay& under_way = under_way_[token];
  Frame copy = copy_on_wire(frames_, under_way.frame, is_marked, ttl);
  // Inside the fabric, only traced frames have an ICRC, so the captured copy needs one.
  if (!has_icrcs_ && !under_way.check_icrc) wire::write_icrc(copy.bytes());
  step_.emit_capture({capture, at, std::move(copy)});
}

}  // namespace rocemu::engine
