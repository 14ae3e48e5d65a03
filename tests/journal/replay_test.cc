// Tests that a replay repeats the recorded actions, and finds its first difference from them.
#include "emulator/journal/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "emulator/journal/journal_writer.h"
#include "tests/journal/recorded.h"

namespace rocemu::journal {
namespace {

using test::Recorded;
using testing::HasSubstr;

TEST(Replay, OfRandomProgramsFindsNoDifference) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Recorded recorded(seed, 1000);
    JournalReader journal(recorded.journal());
    Replay replay(journal);
    const auto difference = replay.run();
    ASSERT_FALSE(difference) << "seed " << seed << ": " << difference->recorded << " / "
                             << difference->now;
    EXPECT_GE(replay.steps(), 1000u);
    EXPECT_FALSE(journal.torn());
  }
}

TEST(Replay, CountsFramesAndEventsAsTheFilesBesideTheJournalDo) {
  const Recorded recorded(2, 1000);  // with even seeds, frames are traced
  JournalReader journal(recorded.journal());
  Replay replay(journal);
  EXPECT_FALSE(replay.run({.frame = {}, .event = UINT64_MAX}));
  EXPECT_GT(replay.frames(), 100u);
  std::ifstream file(recorded.events());
  uint64_t lines = 0;
  for (std::string line; std::getline(file, line);) {
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
    ++lines;
  }
  EXPECT_EQ(replay.events(), lines);
}

TEST(Replay, StopsBehindAFrameOrAnEvent) {
  const Recorded recorded(2, 1000);
  for (const uint64_t wanted : {1u, 17u, 60u}) {
    JournalReader journal(recorded.journal());
    Replay replay(journal);
    EXPECT_FALSE(replay.run({.frame = wanted, .event = {}}));
    EXPECT_GE(replay.frames(), wanted);
    EXPECT_LT(replay.frames(), wanted + 64);
    const auto lines =
        last_lines(recorded.journal(), UINT64_MAX, 10, {.frame = wanted, .event = {}});
    EXPECT_THAT(lines.back(), testing::AnyOf(HasSubstr(R"("frame")"), HasSubstr("cm_message")));
  }
}

/// Returns a copy of the journal with a changed output in the record of one step.
std::vector<std::byte> with_changed_completion(const Recorded& recorded, uint64_t* offset) {
  const daemon::TempDir dir;
  *offset = 0;
  {
    JournalReader reader(recorded.journal());
    JournalWriter writer(dir / "journal", reader.header());
    while (const auto body = reader.next()) {
      writer.begin_record();
      const size_t begin = writer.buffer().size();
      Appender(writer.buffer()).raw(*body);
      Step step;
      if (*offset == 0 && reader.offset() > 2000 && parse(*body, step)) {
        OutputReader outputs(step.outputs);
        for (size_t at = 0; auto output = outputs.next(); at = outputs.position()) {
          if (!std::holds_alternative<engine::Completion>(*output)) continue;
          // In the record of a completion, the wr_id follows the kind, the client and the CQ.
          const auto place = static_cast<size_t>(step.outputs.data() - body->data()) + at + 9;
          writer.buffer()[begin + place] ^= std::byte{1};
          *offset = reader.offset();
          break;
        }
      }
      writer.end_record();
    }
  }
  return test::contents_of(dir / "journal");
}

TEST(Replay, NamesTheFirstOutputThatDiffersWithBothVersions) {
  const Recorded recorded(3, 1000);
  uint64_t offset = 0;
  const std::vector<std::byte> changed = with_changed_completion(recorded, &offset);
  ASSERT_GT(offset, 0u);
  JournalReader journal("it", changed);
  Replay replay(journal);
  const auto difference = replay.run();
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->offset, offset);
  EXPECT_THAT(difference->recorded, HasSubstr(R"("what":"completion")"));
  EXPECT_THAT(difference->now, HasSubstr(R"("what":"completion")"));
  EXPECT_NE(difference->recorded, difference->now);
  EXPECT_EQ(last_lines(recorded.journal(), offset, 10).size(), 10u);
}

TEST(Replay, NoticesWhenTheEngineReadsOtherMemory) {
  ReplayedMemory memory;
  memory.begin_step({});
  const engine::RemoteRange range{0x1000, 8};
  uint8_t bytes[8];
  const std::span<uint8_t> to(bytes);
  EXPECT_EQ(memory.read({1}, {&range, 1}, {&to, 1}), engine::MemoryResult::kFault);
  EXPECT_THAT(memory.difference(), HasSubstr("read 8 bytes of client 1 from 0x1000 on"));
}

}  // namespace
}  // namespace rocemu::journal
