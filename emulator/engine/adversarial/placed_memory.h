// The memory of programs, as the rest of the engine accesses it if there is an adversary. Bytes
// that the engine writes reach the memory later and in another order, but the engine's reads see
// all of them.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "emulator/engine/adversarial/adversarial_class.h"
#include "emulator/engine/adversarial/choices.h"
#include "emulator/engine/adversarial/draw.h"
#include "emulator/engine/adversarial/pending_writes.h"
#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/base/time.h"
#include "emulator/engine/step.h"

namespace rocemu::engine::adversarial {

class PlacedMemory final : public HostMemory {
 public:
  /// The kind of data in the current packet
  enum class Kind : uint8_t {
    kThrough,  // must not be delayed
    kWrite,    // part of a WRITE
    kBuffer,   // part of a SEND or of a response to a READ or atomic, before a completion
    kAtomic,   // the result of a remote atomic
  };
  struct Incoming {
    Stream stream;
    ClientId qp_client;
    Kind kind = Kind::kThrough;
    bool begins_message = false;
  };

  /// All arguments must outlive this object.
  PlacedMemory(Classes classes, uint64_t seed, HostMemory& memory, const Step& step,
               AllChoices& choices);

  /// Sets the message to which the following writes belong.
  void begin(const Incoming& incoming);
  void end() { incoming_.kind = Kind::kThrough; }

  PendingWrites& pending() { return pending_; }
  const PendingWrites& pending() const { return pending_; }

  MemoryResult read(ClientId client, std::span<const RemoteRange> from,
                    std::span<const std::span<uint8_t>> to) override;
  MemoryResult read_posted(ClientId client, uint32_t slot, uint64_t offset,
                           std::span<const RemoteRange> from,
                           std::span<const std::span<uint8_t>> to) override;
  MemoryResult write(ClientId client, std::span<const RemoteRange> to,
                     std::span<const std::span<const uint8_t>> from) override;
  MemoryResult write_soon(ClientId client, std::span<const RemoteRange> to,
                          std::span<const std::span<const uint8_t>> from) override;
  MemoryResult write_received(ClientId client, QpNumber qp, bool is_first,
                              std::span<const RemoteRange> to,
                              std::span<const std::span<const uint8_t>> from) override;
  uint32_t completions_taken(ClientId client, CqId cq) override;

 private:
  /// The plan for the message that a stream is receiving
  struct Message {
    uint64_t number = 0;  // of its stream, from 1
    PlacementPlan plan;
    PlacementPlan relaxed_plan;
    Instant not_before{};  // ordered bytes of earlier messages are written by then
  };

  void begin_message();
  PlacementPlan choose(Choices& of, const PlacementPlan& drawn, const char* what, uint64_t number);

  const Classes classes_;
  HostMemory& memory_;
  const Step& step_;
  AllChoices& choices_;
  PendingWrites pending_;
  Draw placement_, atomicity_, relaxed_;
  Incoming incoming_;
  std::map<Stream, Message> messages_;
};

}  // namespace rocemu::engine::adversarial
