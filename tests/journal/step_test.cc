#include "emulator/journal/step_record.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "emulator/engine/faults/rule.h"

namespace rocemu::journal {
namespace {

using namespace std::chrono_literals;

class OutputsInAJournal : public testing::Test {
 protected:
  /// Writes the output as a record, reads the record, and returns the result.
  template <class Recorded>
  Recorded written(engine::Output output) {
    engine::Outputs outputs;
    outputs.list.push_back(std::move(output));
    bytes_.clear();
    Appender to(bytes_);
    append_outputs(to, outputs);
    OutputReader reader(bytes_);
    const auto read = reader.next();
    EXPECT_FALSE(reader.next());
    EXPECT_FALSE(reader.failed());
    return std::get<Recorded>(read.value());
  }
  engine::Frame frame() {
    engine::Frame frame = frames_.allocate();
    frame.set_size(60);
    return frame;
  }

 private:
  engine::FramePool frames_;
  std::vector<std::byte> bytes_;
};

TEST_F(OutputsInAJournal, AFrameKeepsItsMarks) {
  const engine::FrameMarks marks = {
      .number = 0x1'0000'0002,
      .made_up_with = 7,
      .copy = 3,
      .lost = true,
      .held = 50us,
      .link_delay = 20us,
      .resend = {.why = engine::Resent::kAckTimeout, .begins = true, .waited = 67'108'864ns}};
  const auto read =
      written<RecordedFrame>(engine::FrameTrace{engine::Instant(1ms), frame(), marks});
  EXPECT_EQ(read.at, engine::Instant(1ms));
  EXPECT_EQ(read.marks.number, marks.number);
  EXPECT_EQ(read.marks.made_up_with, 7u);
  EXPECT_EQ(read.marks.copy, 3u);
  EXPECT_TRUE(read.marks.lost);
  EXPECT_EQ(read.marks.held, 50us);
  EXPECT_EQ(read.marks.link_delay, 20us);
  EXPECT_EQ(read.marks.resend.why, engine::Resent::kAckTimeout);
  EXPECT_TRUE(read.marks.resend.begins);
  EXPECT_EQ(read.marks.resend.waited, 67'108'864ns);
  EXPECT_EQ(read.size, 60u);
}

TEST_F(OutputsInAJournal, AFrameWithoutMarksHasItsNumber) {
  const auto read =
      written<RecordedFrame>(engine::FrameTrace{engine::Instant(1ms), frame(), {.number = 5}});
  EXPECT_EQ(read.marks.number, 5u);
  EXPECT_EQ(read.marks.made_up_with, 0u);
  EXPECT_EQ(read.marks.copy, 0u);
  EXPECT_FALSE(read.marks.lost);
  EXPECT_EQ(read.marks.held, 0ns);
  EXPECT_EQ(read.marks.link_delay, 0ns);
  EXPECT_EQ(read.marks.resend.why, engine::Resent::kNo);
  EXPECT_FALSE(read.marks.resend.begins);
}

TEST_F(OutputsInAJournal, ARuleThatFiredKeepsItsTarget) {
  auto rule = std::make_shared<engine::faults::Rule>();
  rule->name = "slow";
  const uint32_t changes = static_cast<uint32_t>(engine::FrameChange::kDelayed) |
                           static_cast<uint32_t>(engine::FrameChange::kRewritten);
  const auto read = written<RecordedRuleFired>(
      engine::RuleFired{.at = {},
                        .rule = rule,
                        .subject = "a frame",
                        .device = engine::DeviceIndex{1},
                        .qp = engine::QpNumber{0x11},
                        .owner = engine::CmChannelId{4},
                        .psn = 9,
                        .frame = {.number = 12, .changes = changes, .delay = 50us}});
  EXPECT_EQ(read.rule, "slow");
  EXPECT_EQ(read.subject, "a frame");
  EXPECT_EQ(read.device, engine::DeviceIndex{1});
  EXPECT_EQ(read.qp, engine::QpNumber{0x11});
  EXPECT_EQ(read.owner, engine::Owner(engine::CmChannelId{4}));
  EXPECT_EQ(read.psn, 9u);
  EXPECT_EQ(read.frame.number, 12u);
  EXPECT_EQ(read.frame.changes, changes);
  EXPECT_EQ(read.frame.delay, 50us);
}

TEST_F(OutputsInAJournal, ARuleWithoutATargetNamesNone) {
  auto rule = std::make_shared<engine::faults::Rule>();
  const auto read = written<RecordedRuleFired>(
      engine::RuleFired{.at = {}, .rule = rule, .subject = "verb rdma_listen"});
  EXPECT_EQ(read.device, std::nullopt);
  EXPECT_EQ(read.qp, std::nullopt);
  EXPECT_EQ(read.owner, std::nullopt);
  EXPECT_EQ(read.psn, std::nullopt);
  EXPECT_EQ(read.frame.number, 0u);
}

}  // namespace
}  // namespace rocemu::journal
