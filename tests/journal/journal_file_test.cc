// Tests journal files that are complete, truncated at any place, or damaged at any place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "emulator/journal/journal_reader.h"
#include "emulator/journal/journal_writer.h"
#include "emulator/journal/replay.h"
#include "tests/journal/recorded.h"

namespace rocemu::journal {
namespace {

using test::Recorded;
using testing::ContainsRegex;
using testing::HasSubstr;

Header small_header() {
  Header header;
  header.fabric = engine::default_fabric(1);
  return header;
}

/// What a replay did with a journal: whether it refused the journal, and if not, the number of
/// steps that it executed.
struct Outcome {
  uint64_t steps = 0;
  bool torn = false;
  std::string error;
};
Outcome replay(Bytes contents) {
  Outcome outcome;
  try {
    JournalReader journal("it", contents);
    Replay replay(journal);
    const auto difference = replay.run();
    EXPECT_FALSE(difference) << difference->recorded << " / " << difference->now;
    outcome = {replay.steps(), journal.torn(), ""};
  } catch (const JournalError& error) {
    outcome.error = error.what();
  }
  return outcome;
}

/// Reads the journal like replay(), but without an engine, which is faster.
Outcome read(Bytes contents) {
  Outcome outcome;
  try {
    JournalReader journal("it", contents);
    Step step;
    while (const auto body = journal.next()) {
      EXPECT_TRUE(parse(*body, step));
      ++outcome.steps;
    }
    outcome.torn = journal.torn();
  } catch (const JournalError& error) {
    outcome.error = error.what();
  }
  return outcome;
}

/// Every file is read, and one in kReplayEach files is also replayed by an engine.
constexpr size_t kReplayEach = 499;

TEST(JournalFile, GivesBackTheRecordsAndTheirPlaces) {
  const daemon::TempDir dir;
  {
    JournalWriter writer(dir / "journal", small_header());
    for (const char* text : {"", "one", "another"}) {
      writer.begin_record();
      Appender(writer.buffer()).raw_text(text);
      writer.end_record();
    }
    writer.finish();
  }
  JournalReader reader(dir / "journal");
  std::vector<size_t> sizes;
  std::vector<uint64_t> offsets;
  while (const auto body = reader.next()) {
    sizes.push_back(body->size());
    offsets.push_back(reader.offset());
  }
  EXPECT_EQ(sizes, (std::vector<size_t>{0, 3, 7}));
  ASSERT_EQ(offsets.size(), 3u);
  EXPECT_EQ(offsets[1] - offsets[0], sizeof(RecordFrame));
  EXPECT_EQ(offsets[2] - offsets[1], sizeof(RecordFrame) + 3);
  EXPECT_FALSE(reader.torn());
}

TEST(JournalFile, CutOffAtAnyByteReplaysUpToThere) {
  const Recorded recorded(4, 5);
  const std::vector<std::byte> whole = recorded.bytes();
  const Outcome all = replay(whole);
  ASSERT_EQ(all.error, "");
  ASSERT_EQ(all.steps, read(whole).steps);
  uint64_t steps = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut = Bytes(whole).first(size);
    const Outcome part = size % kReplayEach == 0 ? replay(cut) : read(cut);
    if (!part.error.empty()) {
      EXPECT_EQ(steps, 0u) << "cut off at " << size << ": " << part.error;
      continue;
    }
    EXPECT_GE(part.steps, steps) << "cut off at " << size;
    EXPECT_TRUE(part.torn) << "cut off at " << size;
    if (size + sizeof(RecordFrame) < whole.size()) {
      EXPECT_LT(part.steps, all.steps);
    }
    steps = part.steps;
  }
  EXPECT_EQ(steps, all.steps);  // only the end record is missing
}

TEST(JournalFile, WithoutItsEndIsTornThoughEveryRecordIsWhole) {
  const Recorded recorded(4, 5);
  std::vector<std::byte> bytes = recorded.bytes();
  const Outcome whole = replay(bytes);
  EXPECT_FALSE(whole.torn);
  bytes.resize(bytes.size() - sizeof(RecordFrame));
  const Outcome cut = replay(bytes);
  EXPECT_EQ(cut.steps, whole.steps);
  EXPECT_TRUE(cut.torn);
  JournalReader reader("it", bytes);
  EXPECT_NO_THROW(reader.require_whole());
  while (reader.next()) {
  }
  EXPECT_THROW(reader.require_whole(), TruncatedJournal);
}

TEST(JournalFile, WithAnythingBehindItsEndIsRefused) {
  const Recorded recorded(4, 5);
  std::vector<std::byte> bytes = recorded.bytes();
  bytes.push_back(std::byte{0});
  EXPECT_THAT(replay(bytes).error, HasSubstr("data follows it"));
}

TEST(JournalFile, WithAnyBitFlippedIsRefusedAtAPlace) {
  const Recorded recorded(4, 5);
  std::vector<std::byte> bytes = recorded.bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    const std::byte bit{static_cast<uint8_t>(1u << (i % 8))};
    bytes[i] ^= bit;
    const Outcome outcome = i % kReplayEach == 0 ? replay(bytes) : read(bytes);
    bytes[i] ^= bit;
    EXPECT_THAT(outcome.error, HasSubstr("it: ")) << "byte " << i;
  }
}

TEST(JournalFile, WhoseRecordsMakeNoSenseIsRefusedThoughTheirChecksumsAreRight) {
  const Recorded recorded(4, 60);
  const std::vector<std::byte> whole = recorded.bytes();
  uint32_t refused = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    engine::Random random(seed);
    const daemon::TempDir dir;
    {
      JournalReader reader("it", whole);
      JournalWriter writer(dir / "journal", reader.header());
      while (const auto body = reader.next()) {
        writer.begin_record();
        const size_t begin = writer.buffer().size();
        Appender(writer.buffer()).raw(*body);
        if (random.next() % 30 == 0) {
          writer.buffer()[begin + random.next() % body->size()] = std::byte(random.next() & 0xff);
        }
        writer.end_record();
      }
      writer.finish();
    }
    try {
      JournalReader reader(dir / "journal");
      Replay replay(reader);
      if (replay.run()) ++refused;  // the damage changed an input, so the outputs differ
    } catch (const JournalError& error) {
      EXPECT_THAT(error.what(), ContainsRegex("/journal: byte [0-9]+: "));
      ++refused;
    }
  }
  EXPECT_GT(refused, 30u);
}

TEST(JournalFile, OfAnotherFormatNamesBoth) {
  const Recorded recorded(4, 1);
  std::vector<std::byte> bytes = recorded.bytes();
  bytes[sizeof kMagic] = std::byte{kFormatVersion + 7};
  EXPECT_THAT(
      replay(bytes).error,
      ContainsRegex("the journal has format 15, but this is rocemu .*, which reads format 8:"));
}

TEST(JournalFile, AnErrorForAnotherFileNamesTheOptionThatRecords) {
  EXPECT_THAT(replay(std::as_bytes(std::span("#!/bin/sh\nexit 0\n"))).error,
              HasSubstr("`rocemu run --record` writes one"));
  EXPECT_THAT(replay({}).error, HasSubstr("inside its header, so the journal cannot be read"));
  EXPECT_THROW(JournalReader("/nonexistent/journal"), JournalError);
}

TEST(JournalFile, ReportsAFullDiskOnce) {
  const Header header = small_header();
  JournalWriter writer("/dev/full", header);
  EXPECT_THAT(writer.take_error(), HasSubstr("cannot write /dev/full: No space left on device"));
  EXPECT_EQ(writer.take_error(), "");
}

}  // namespace
}  // namespace rocemu::journal
