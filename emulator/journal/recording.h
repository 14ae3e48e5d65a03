// `rocemu run --record DIR`: writes DIR/journal and DIR/events.jsonl while the engine runs. The
// owner of the engine gives it memory(), and calls this class at the beginning and end of each
// step. DIR/trace.pcap is made from the journal after the run. With `--adversarial`, DIR/choices
// has a line for each choice of the adversary: its class, its number, and its effect.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/engine/events.h"
#include "emulator/journal/event.h"
#include "emulator/journal/journal_writer.h"
#include "emulator/journal/memory_calls.h"
#include "emulator/os/background_file.h"

namespace rocemu::journal {

inline constexpr char kJournalFile[] = "/journal";
inline constexpr char kEventsFile[] = "/events.jsonl";
inline constexpr char kChoicesFile[] = "/choices";
inline constexpr char kCaptureFile[] = "/trace.pcap";

class Recording {
 public:
  /// Creates the files in `dir`, which must exist. take_error() reports a failure. The recording
  /// ends when its journal has `most_bytes` bytes; 0 means no limit.
  Recording(const std::string& dir, const Header& header, engine::HostMemory& memory,
            uint64_t most_bytes = 0);
  ~Recording();

  engine::HostMemory& memory() { return memory_; }

  void begin_step(engine::Instant now, const engine::Input& input);
  /// Ends the step. The first `before` elements of `outputs` belong to earlier steps.
  void end_step(const engine::Outputs& outputs, size_t before = 0);
  /// Adds the choices that the adversary made in the step.
  void add_choices(const std::vector<engine::AdversarialChoice>& choices);
  /// Adds the process of a client that has been attached.
  void name(const ClientName& client);

  /// Ends the recording in order: the journal is complete.
  void end();
  /// Passes all data to the files, and does not wait until it is written.
  void flush();
  /// Passes all data to the files, and waits until it is written.
  void sync();
  /// Returns, once, the reason why the recording ends early, such as a full disk; nothing is
  /// recorded from then on. Otherwise returns an empty text.
  std::string take_error();

 private:
  void write_events();

  const engine::FabricConfig fabric_;  // the source of names
  JournalWriter journal_;
  RecordingMemory memory_;
  std::string events_path_;
  BackgroundFile events_file_;
  std::vector<std::byte> events_;
  std::optional<BackgroundFile> choices_file_;  // with `--adversarial`
  std::vector<std::byte> choices_;
  std::vector<Event> described_;
  Step step_;  // the step in progress, as a reader would see it
  size_t record_ = 0;
  size_t calls_ = 0;
  engine::Instant now_{};
  const uint64_t most_bytes_;
  uint64_t bytes_ = 0;  // of records
  bool ended_ = false;
};

}  // namespace rocemu::journal
