#include "emulator/daemon/run/recent_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "emulator/journal/event.h"
#include "wire/packet.h"
#include "wire/print.h"

namespace rocemu::daemon {
namespace {

constexpr size_t kMost = 10;

std::string time_text(engine::Instant at) {
  return fmt::format("{:.6f} s", std::chrono::duration<double>(at.time_since_epoch()).count());
}

}  // namespace

void RecentEvents::add(const engine::FrameTrace& trace) {
  RecentFrame recent{};
  if (frames_.size() == kMost) {  // its memory is reused
    recent = std::move(frames_.front());
    frames_.pop_front();
  }
  recent.at = trace.at;
  const auto bytes = trace.frame.bytes();
  recent.bytes.assign(bytes.begin(), bytes.end());
  frames_.push_back(std::move(recent));
}

void RecentEvents::add(engine::Instant at, const engine::Completion& completion) {
  if (completions_.size() == kMost) completions_.pop_front();
  completions_.push_back({at, completion});
}

std::vector<std::string> RecentEvents::frames() const {
  std::vector<std::string> lines;
  for (const RecentFrame& frame : frames_) {
    const auto packet = wire::parse_frame(frame.bytes);
    lines.push_back(time_text(frame.at) + ": " +
                    (packet ? wire::to_string(*packet) : std::string("malformed")));
  }
  return lines;
}

std::vector<std::string> RecentEvents::completions() const {
  std::vector<std::string> lines;
  for (const RecentCompletion& one : completions_) {
    const journal::Event event = journal::describe(one.at, journal::RecordedOutput(one.completion));
    std::string line = time_text(one.at) + ":";
    for (const journal::Field& field : event.fields) {
      line += fmt::format(" {}={}", field.key,
                          field.text.empty() ? std::to_string(field.number) : field.text);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace rocemu::daemon
