// Bytes that the NIC has received but not written to memory yet. Before the NIC reads memory, or
// writes the same bytes again, it writes the pending bytes there.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "emulator/engine/adversarial/placement.h"
#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/base/ids.h"
#include "emulator/engine/base/time.h"

namespace rocemu::engine::adversarial {

/// A series of messages whose order is defined: the messages that a QP receives as a responder, or
/// those that it receives as a requester
struct Stream {
  QpNumber qp;
  bool is_requester = false;
  bool operator==(const Stream&) const = default;
  auto operator<=>(const Stream&) const = default;
};

struct PendingWrite {
  Stream stream;
  ClientId client;          // the owner of the memory
  ClientId qp_client;       // the owner of the QP
  bool is_ordered = false;  // the stream's next ordered WRITE waits for this write
  bool is_relaxed = false;
  std::vector<RemoteRange> ranges;
  std::vector<uint8_t> bytes;  // of all ranges, one after the other
  PlacementPlan plan;
  std::array<Instant, PlacementPlan::kMaxWaves> due{};
  uint32_t placed = 0;  // bit i: wave i was written
};

class PendingWrites {
 public:
  /// `memory` must outlive this object.
  explicit PendingWrites(HostMemory& memory) : memory_(memory) {}

  bool empty() const { return list_.empty(); }
  void add(PendingWrite&& write);
  /// Writes the waves that are due, in the order in which they are due.
  void place_due(Instant now);
  void place_stream(const Stream& stream);
  /// Writes all pending bytes of each stream that has a pending byte in these ranges.
  void place_overlapping(ClientId client, std::span<const RemoteRange> ranges);
  /// Writes all pending bytes that go to the client's memory or were received by the client's QPs.
  void place_client(ClientId client);
  void place_all();
  /// Discards the pending bytes in the memory of a client that has ended.
  void drop(ClientId client);

  std::optional<Instant> next_due() const;
  /// Returns the time at which the last pending byte of the stream will be written; `now` if none
  /// is pending.
  Instant end_of(const Stream& stream, Instant now) const;
  /// Returns the time at which all pending bytes that must precede the next ordered WRITE of the
  /// stream will be written.
  Instant ordered_end_of(const Stream& stream, Instant now) const;

 private:
  void place(PendingWrite& write);
  void place_wave(PendingWrite& write, uint32_t wave);
  template <class Matches>
  void place_if(Matches matches);
  void forget_placed();

  HostMemory& memory_;
  std::vector<PendingWrite> list_;  // in order of arrival
};

}  // namespace rocemu::engine::adversarial
