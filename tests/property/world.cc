#include "tests/property/world.h"

#include <algorithm>

namespace rocemu::property {

using namespace std::chrono_literals;

World::World(const Program& program) : program_(program), network_(program.link) {
  if (!set_up(program, sides_)) fail("something cannot be created or connected");
  for (Side& side : sides_) {
    side.bench->memory.on_mismatch = [this] { fail("memory lists of different total length"); };
  }
}

std::string World::run() {
  for (const Op& op : program_.ops) {
    execute(op);
    if (!wrong_.empty()) return wrong_;
  }
  post_missing_receives();
  advance_to(now_ + 60s);
  check_end();
  return wrong_;
}

void World::advance_to(engine::Instant end) {
  for (;;) {
    engine::Instant next = end;
    for (Side& side : sides_) {
      if (const auto deadline = side.bench->engine().next_deadline()) {
        next = std::min(next, *deadline);
      }
    }
    if (const auto arrival = network_.next()) next = std::min(next, *arrival);
    now_ = std::max(now_, next);
    for (uint32_t i = 0; i < kSides; ++i) {
      sides_[i].bench->advance_to(now_.time_since_epoch());
      collect(i);
    }
    while (network_.next() && *network_.next() <= now_) deliver(network_.take());
    if (!wrong_.empty() || now_ >= end) return;
  }
}

void World::deliver(const Network::Arrival& arrival) {
  on_arrival(arrival.to, arrival.bytes);
  sides_[arrival.to].bench->step(engine::ReceivedFrame{engine::DeviceIndex{0}, arrival.bytes});
  collect(arrival.to);
  for (const Half& half : sides_[arrival.to].halves) {
    if (!half.due.empty()) fail("all of a message is there, and no completion");
  }
}

void World::collect(uint32_t side) {
  const std::vector<test::Timed> log = std::exchange(sides_[side].bench->log, {});
  for (const test::Timed& one : log) {
    if (const auto* completion = std::get_if<engine::Completion>(&one.output)) {
      on_completion(side, completion->cqe);
    } else if (const auto* sent = std::get_if<engine::TransmitFrame>(&one.output)) {
      on_sent(side, sent->frame.bytes());
      network_.send(now_, side, sent->frame.bytes());
    } else if (const auto* event = std::get_if<engine::AsyncEvent>(&one.output)) {
      on_event(side, *event);
    } else if (std::holds_alternative<engine::ClientViolation>(one.output)) {
      fail("the engine calls the program a violation");
    }
  }
}

}  // namespace rocemu::property
