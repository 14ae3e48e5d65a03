#include "tests/timeline/recorder.h"

#include <gtest/gtest.h>

#include "emulator/timeline/reading/read_recording.h"

namespace rocemu::test {

void Recorder::begin(const engine::FabricConfig& config) {
  journal::Header header;
  header.fabric = config;
  header.clock = "lockstep";
  recording_.emplace(dir_ / "", header, unused_);
}

void Recorder::before_step(engine::Instant now, const engine::Input& input) {
  if (recording_) recording_->begin_step(now, input);
}

void Recorder::after_step(const engine::Outputs& outputs) {
  if (recording_) recording_->end_step(outputs);
}

timeline::Timeline Recorder::timeline() {
  recording_.reset();
  timeline::Timeline timeline = timeline::read_recording(dir_ / "");
  EXPECT_TRUE(timeline.notes.empty());
  return timeline;
}

std::vector<timeline::Happening> frames_of(const timeline::Timeline& timeline) {
  std::vector<timeline::Happening> frames;
  for (const timeline::Happening& one : timeline.happenings) {
    if (one.kind == timeline::Kind::kFrame || one.kind == timeline::Kind::kCm)
      frames.push_back(one);
  }
  return frames;
}

wire::Packet packet_of(const timeline::Happening& frame) {
  return *wire::parse_frame(frame.bytes);
}

std::vector<std::string> reasons_of(const timeline::Timeline& timeline) {
  std::vector<std::string> reasons;
  for (const timeline::Happening& frame : frames_of(timeline)) {
    if (frame.reason.empty()) continue;
    std::string text = frame.text;
    if (text.starts_with("SEND Only ")) text.erase(0, 10);
    reasons.push_back(text.substr(0, text.find(" (")) + ": " + frame.reason);
  }
  return reasons;
}

}  // namespace rocemu::test
