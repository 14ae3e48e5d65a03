// Records of formats before this one.
#include "emulator/journal/step.h"

#include <gtest/gtest.h>

#include <vector>

namespace rocemu::journal {
namespace {

TEST(Step, AFrameFromOutsideOfFormat4IsABurstOfOne) {
  constexpr uint8_t kReceiveFrame = 8;
  const std::vector<uint8_t> frame = {1, 2, 3};
  std::vector<std::byte> record;
  Appender to(record);
  to.put(RecordKind::kStep);
  to.put(engine::Instant{});
  to.put(kReceiveFrame);
  to.put(engine::DeviceIndex{1});
  to.put(true);
  to.bytes(std::as_bytes(std::span(frame)));
  to.bytes({});  // calls
  to.bytes({});  // outputs
  Step step;
  ASSERT_TRUE(parse(record, step));
  const auto& input = std::get<engine::ReceivedFrames>(*step.input);
  ASSERT_EQ(input.frames.size(), 1u);
  EXPECT_EQ(input.frames[0].device, engine::DeviceIndex{1});
  EXPECT_TRUE(input.frames[0].identification_known);
  EXPECT_EQ(std::vector<uint8_t>(input.frames[0].bytes.begin(), input.frames[0].bytes.end()),
            frame);
}

}  // namespace
}  // namespace rocemu::journal
