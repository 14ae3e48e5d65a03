// Runs a new engine with the inputs of a journal, without the application, and compares all its
// outputs and memory accesses with the recording.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "emulator/engine/engine.h"
#include "emulator/journal/event.h"
#include "emulator/journal/journal_reader.h"
#include "emulator/journal/memory_calls.h"

namespace rocemu::journal {

/// The point at which the replay stops: after a frame of trace.pcap, or after a line of
/// events.jsonl. Both numbers count from 1.
struct Until {
  std::optional<uint64_t> frame;
  std::optional<uint64_t> event;
};

/// The first difference from the recording
struct Difference {
  uint64_t offset = 0;            // of the step's record in the journal
  engine::Instant at{};           // of the step
  std::optional<uint64_t> frame;  // if a frame differs: its number
  std::string recorded;           // one line each
  std::string now;
};

class Replay {
 public:
  explicit Replay(JournalReader& journal);

  /// Replays the journal, and returns the first difference from the recording, if there is one.
  /// Throws JournalError for a journal that is damaged or that no daemon can have recorded.
  std::optional<Difference> run(const Until& until = {});

  /// Is called for each frame of trace.pcap, in order, if it is equal to the recorded frame.
  using OnFrame = std::function<void(engine::Instant at, std::span<const uint8_t> frame)>;
  void on_frame(OnFrame callback) { on_frame_ = std::move(callback); }

  /// Is called with the engine's outputs for each step that is equal to the recorded one.
  using OnStep = std::function<void(const Step& step, const engine::Outputs& outputs)>;
  void on_step(OnStep callback) { on_step_ = std::move(callback); }
  /// Makes the engine report WRITEs that race with each other, as outputs for on_step()
  /// (engine::WritesUnordered).
  void watch_write_races() { engine_.watch_write_races(); }

  /// Returns the engine, so that observers can read its state, which changes only in run().
  engine::Engine& engine() { return engine_; }

  uint64_t steps() const { return steps_; }
  uint64_t frames() const { return frames_; }
  /// Returns the number of events so far. They are counted only if Until::event is set.
  uint64_t events() const { return events_; }
  engine::FabricSnapshot snapshot() const { return engine_.snapshot(); }

 private:
  std::optional<Difference> replay(const Step& step);
  std::optional<Difference> compare(const Step& step);
  void check(const Step& step);
  void require(bool holds, const char* what);

  JournalReader& journal_;
  ReplayedMemory memory_;
  engine::Engine engine_;
  engine::Outputs outputs_;
  std::vector<std::byte> encoded_;
  std::vector<Event> described_;
  OnFrame on_frame_;
  OnStep on_step_;
  std::set<engine::ClientId> clients_;
  std::set<engine::CmChannelId> channels_;
  engine::Instant now_{};
  uint64_t steps_ = 0, frames_ = 0, events_ = 0;
};

/// Returns, as lines of JSON, the last `count` events and frames that are before the record at
/// `offset` in the journal and not after `until`.
std::vector<std::string> last_lines(const std::string& path, uint64_t offset, size_t count,
                                    const Until& until = {});

}  // namespace rocemu::journal
