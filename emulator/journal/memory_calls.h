// The engine's calls of HostMemory during a step, in order, with their results. Besides the inputs
// these results are all that an engine can know.
//
// Payload that a client sends repeatedly from the same place is stored in the journal once:
// recorder and replay keep the last bytes of each place, and a record says "the same as last time".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/engine/base/host_memory.h"
#include "emulator/journal/bytes.h"

namespace rocemu::journal {

/// The last payload of some places, which are the same in recorder and replay
class RecentPayloads {
 public:
  struct Slot {
    uint32_t client = 0;
    uint64_t address = 0;
    std::vector<uint8_t> bytes;
  };
  /// Returns where the payload of a read is kept, or null if it is not.
  Slot* slot_for(engine::ClientId client, std::span<const engine::RemoteRange> ranges,
                 uint64_t length);

 private:
  static constexpr size_t kSlots = 128;
  static constexpr uint64_t kLeast = 256, kMax = uint64_t{128} << 10;
  std::vector<Slot> slots_{kSlots};
};

/// Passes calls on and appends them to the record of the step in progress.
class RecordingMemory : public engine::HostMemory {
 public:
  RecordingMemory(engine::HostMemory& memory, std::vector<std::byte>& record)
      : memory_(memory), record_(record) {}

  engine::MemoryResult read(engine::ClientId client, std::span<const engine::RemoteRange> from,
                            std::span<const std::span<uint8_t>> to) override;
  /// Is recorded as read().
  engine::MemoryResult read_posted(engine::ClientId client, uint32_t slot, uint64_t offset,
                                   std::span<const engine::RemoteRange> from,
                                   std::span<const std::span<uint8_t>> to) override;
  engine::MemoryResult write(engine::ClientId client, std::span<const engine::RemoteRange> to,
                             std::span<const std::span<const uint8_t>> from) override;
  engine::MemoryResult write_soon(engine::ClientId client, std::span<const engine::RemoteRange> to,
                                  std::span<const std::span<const uint8_t>> from) override;
  engine::MemoryResult write_received(engine::ClientId client, engine::QpNumber qp, bool is_first,
                                      std::span<const engine::RemoteRange> to,
                                      std::span<const std::span<const uint8_t>> from) override;
  uint32_t completions_taken(engine::ClientId client, engine::CqId cq) override;

  /// Between steps nothing is recorded.
  void set_recording(bool recording) { recording_ = recording; }

 private:
  void record_read(engine::ClientId client, std::span<const engine::RemoteRange> from,
                   std::span<const std::span<uint8_t>> to, engine::MemoryResult result);
  void record_write(engine::ClientId client, std::span<const engine::RemoteRange> to,
                    std::span<const std::span<const uint8_t>> from, engine::MemoryResult result);

  engine::HostMemory& memory_;
  std::vector<std::byte>& record_;
  RecentPayloads recent_;
  bool recording_ = false;
};

/// Returns the recorded results, and detects calls that differ from the recorded ones.
class ReplayedMemory : public engine::HostMemory {
 public:
  /// Sets the calls of the next step.
  void begin_step(Bytes calls);
  /// Returns the call of this step that differs from the recorded one, or that is missing or
  /// superfluous; empty if there is none.
  std::string difference() const;
  /// Returns whether the record itself is invalid.
  bool failed() const { return failed_; }

  engine::MemoryResult read(engine::ClientId client, std::span<const engine::RemoteRange> from,
                            std::span<const std::span<uint8_t>> to) override;
  engine::MemoryResult write(engine::ClientId client, std::span<const engine::RemoteRange> to,
                             std::span<const std::span<const uint8_t>> from) override;
  uint32_t completions_taken(engine::ClientId client, engine::CqId cq) override;

 private:
  bool expect(Bytes asked, const std::string& what);

  Taker calls_{Bytes{}};
  Bytes all_;
  RecentPayloads recent_;
  std::vector<std::byte> asked_;
  std::string difference_;
  bool failed_ = false;
};

}  // namespace rocemu::journal
