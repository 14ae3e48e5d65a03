// `rocemu run --record DIR`: writes DIR/journal and DIR/events.jsonl while the engine runs. The
// engine's owner gives it memory() and says when a step begins and ends. (DIR/trace.pcap is made of
// the journal when the run is over.) With `--adversarial` DIR/choices has a line for each thing
// that the adversary did: its class, its number, and what it was.
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
  /// `dir` is there. take_error() says whether that worked.
  /// The recording ends when its journal has `most_bytes`; 0 is no limit.
  Recording(const std::string& dir, const Header& header, engine::HostMemory& memory,
            uint64_t most_bytes = 0);
  ~Recording();

  engine::HostMemory& memory() { return memory_; }

  void begin_step(engine::Instant now, const engine::Input& input);
  /// The first of the outputs are of steps before this one.
  void end_step(const engine::Outputs& outputs, size_t before = 0);
  /// What the adversary did in the step.
  void add_choices(const std::vector<engine::AdversarialChoice>& choices);
  /// Says which process a client is, once it is attached.
  void name(const ClientName& client);

  /// From now on nothing is recorded.
  void end();
  /// Hands what there is to the files.
  void flush();
  /// Waits until all that was recorded is in the files.
  void sync();
  /// Empty, or why the recording ended, once: from then on nothing is recorded.
  std::string take_error();

 private:
  void write_events();

  const engine::FabricConfig fabric_;  // what names are from
  JournalWriter journal_;
  RecordingMemory memory_;
  std::string events_path_;
  BackgroundFile events_file_;
  std::vector<std::byte> events_;
  std::optional<BackgroundFile> choices_file_;  // with `--adversarial`
  std::vector<std::byte> choices_;
  std::vector<Event> described_;
  Step step_;  // the one in progress, as a reader would see it
  size_t record_ = 0;
  size_t calls_ = 0;
  engine::Instant now_{};
  const uint64_t most_bytes_;
  uint64_t bytes_ = 0;  // of records
  bool ended_ = false;
};

}  // namespace rocemu::journal
