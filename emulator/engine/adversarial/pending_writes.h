// Bytes that arrived and have yet to be written to memory. The NIC knows them: before it reads
// memory, or writes the same bytes again, it writes what is pending there.
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

/// The messages that a QP receives as a responder, or as a requester. They have an order.
struct Stream {
  QpNumber qp;
  bool is_requester = false;
  bool operator==(const Stream&) const = default;
  auto operator<=>(const Stream&) const = default;
};

struct PendingWrite {
  Stream stream;
  ClientId client;          // whose memory it is
  ClientId qp_client;       // whose QP it is
  bool is_ordered = false;  // the next ordered WRITE of the stream waits for it
  bool is_relaxed = false;
  std::vector<RemoteRange> ranges;
  std::vector<uint8_t> bytes;  // of all ranges, one behind the other
  PlacementPlan plan;
  std::array<Instant, PlacementPlan::kMaxWaves> due{};
  uint32_t placed = 0;  // bit i: wave i was written
};

class PendingWrites {
 public:
  /// `memory` outlives this.
  explicit PendingWrites(HostMemory& memory) : memory_(memory) {}

  bool empty() const { return list_.empty(); }
  void add(PendingWrite&& write);
  /// Writes the waves that are due, in the order in which they are due.
  void place_due(Instant now);
  void place_stream(const Stream& stream);
  /// Writes all of each stream that has one of the bytes pending.
  void place_overlapping(ClientId client, std::span<const RemoteRange> ranges);
  /// Writes what is pending in the client's memory and for its QPs.
  void place_client(ClientId client);
  void place_all();
  /// Forgets what is pending in the memory of a client that is gone.
  void drop(ClientId client);

  std::optional<Instant> next_due() const;
  /// When the last byte of the stream will be written: `now` if none is pending.
  Instant end_of(const Stream& stream, Instant now) const;
  /// The same of bytes that a later WRITE waits for.
  Instant ordered_end_of(const Stream& stream, Instant now) const;

 private:
  void place(PendingWrite& write);
  void place_wave(PendingWrite& write, uint32_t wave);
  template <class Matches>
  void place_if(Matches matches);
  void forget_placed();

  HostMemory& memory_;
  std::vector<PendingWrite> list_;  // in the order in which they arrived
};

}  // namespace rocemu::engine::adversarial
