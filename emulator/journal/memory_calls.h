// Records and replays the calls of HostMemory that the engine makes during a step, in order, with
// their results. Besides the inputs, an engine learns nothing but these results.
//
// If a client sends the same payload repeatedly from the same place, the journal contains it once.
// The recorder and the replay both keep the last payload of each place, and a record says that it
// is the same as last time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/engine/base/host_memory.h"
#include "emulator/journal/bytes.h"

namespace rocemu::journal {

/// The last payloads of some places in the clients' memory. The recorder and the replay have the
/// same ones.
class RecentPayloads {
 public:
  struct Slot {
    uint32_t client = 0;
    uint64_t address = 0;
    std::vector<uint8_t> bytes;
  };
  /// Returns the entry for the payload of a read, or null if such a payload is not kept. The entry
  /// may still have other bytes.
  Slot* slot_for(engine::ClientId client, std::span<const engine::RemoteRange> ranges,
                 uint64_t length);

 private:
  static constexpr size_t kSlots = 128;
  static constexpr uint64_t kLeast = 256, kMax = uint64_t{128} << 10;
  std::vector<Slot> slots_{kSlots};
};

/// Passes calls to the real memory, and appends them to the record of the current step.
class RecordingMemory : public engine::HostMemory {
 public:
  RecordingMemory(engine::HostMemory& memory, std::vector<std::byte>& record)
      : memory_(memory), record_(record) {}

  engine::MemoryResult read(engine::ClientId client, std::span<const engine::RemoteRange> from,
                            std::span<const std::span<uint8_t>> to) override;
  /// Reads the data of a posted message, and records this in the same way as read().
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

  /// Starts or stops recording. Calls between two steps are not recorded.
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

/// Returns the recorded results of calls, and detects calls that differ from the recorded ones.
class ReplayedMemory : public engine::HostMemory {
 public:
  /// Sets the recorded calls of the next step.
  void begin_step(Bytes calls);
  /// Describes the first difference between the calls of this step and the recorded calls: a call
  /// that differs, is missing or is additional. Returns an empty text if there is none.
  std::string difference() const;
  /// Returns whether the record of the calls is invalid.
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
