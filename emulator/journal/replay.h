// Runs a new engine on a journal, without the application, and compares everything it does with the
// recording.
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

/// The point at which to stop: after the frame of that number in trace.pcap, or after that line of
/// events.jsonl. Both count from 1.
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

  /// Throws JournalError for a journal that is damaged or that no daemon can have recorded.
  std::optional<Difference> run(const Until& until = {});

  /// Called for each frame of the trace that equals the recorded one, in order.
  using OnFrame = std::function<void(engine::Instant at, std::span<const uint8_t> frame)>;
  void on_frame(OnFrame callback) { on_frame_ = std::move(callback); }

  /// Called for each step that equals the recorded one, with the engine's outputs.
  using OnStep = std::function<void(const Step& step, const engine::Outputs& outputs)>;
  void on_step(OnStep callback) { on_step_ = std::move(callback); }
  /// Makes the engine detect races of WRITEs (engine::WritesUnordered), for on_step().
  void watch_write_races() { engine_.watch_write_races(); }

  /// Returns the engine, for observers: it changes only in run().
  engine::Engine& engine() { return engine_; }

  uint64_t steps() const { return steps_; }
  uint64_t frames() const { return frames_; }
  /// Returns the number of events, which are counted only with Until::event.
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

/// Returns the last `count` events and frames of a journal before the record at `offset`, and not
/// after `until`, as lines of JSON.
std::vector<std::string> last_lines(const std::string& path, uint64_t offset, size_t count,
                                    const Until& until = {});

}  // namespace rocemu::journal
