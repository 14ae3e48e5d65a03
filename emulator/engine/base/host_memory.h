// The engine's view of application memory: a port, so that a replay can feed recorded bytes and a
// test can use an array.
#pragma once

#include <cstdint>
#include <span>

#include "emulator/engine/base/ids.h"

namespace rocemu::engine {

/// A range of a client's address space.
struct RemoteRange {
  uint64_t address;
  uint64_t length;
  /// The same bytes may have other addresses, of this client or of another.
  bool is_shared = false;
  /// The region has IBV_ACCESS_RELAXED_ORDERING. Only `--adversarial` uses it.
  bool is_relaxed = false;
};

enum class MemoryResult : uint8_t {
  kDone,
  kFault,  // some byte is not mapped, or protected
  kGone,   // there is no such process any more
  /// The program has yet to provide it (userfaultfd(2), a file system in user space). Nothing was
  /// read; what was to be written may still be, before anything else is. MemoryReady comes when it
  /// is worth another try.
  kNotYet,
};

class HostMemory {
 public:
  virtual ~HostMemory() = default;

  /// Copies the ranges, one behind the other, into the buffers, one behind the other; both sides
  /// have the same total length. Unless kDone, the buffers' contents are unspecified.
  virtual MemoryResult read(ClientId client, std::span<const RemoteRange> from,
                            std::span<const std::span<uint8_t>> to) = 0;

  /// As read(), from byte `offset` on of a message that the client also put into that slot when it
  /// posted (abi::SendSlots): both are the same for as long as the message is not complete.
  virtual MemoryResult read_posted(ClientId client, uint32_t slot, uint64_t offset,
                                   std::span<const RemoteRange> from,
                                   std::span<const std::span<uint8_t>> to) {
    static_cast<void>(slot);
    static_cast<void>(offset);
    return read(client, from, to);
  }

  /// The other way. Earlier bytes may have been written when a later one could not.
  virtual MemoryResult write(ClientId client, std::span<const RemoteRange> to,
                             std::span<const std::span<const uint8_t>> from) = 0;

  /// As write(), but for memory that was there when it was registered, and which is pinned: what is
  /// not there any more is no fault. The bytes may be written when the step is over.
  virtual MemoryResult write_soon(ClientId client, std::span<const RemoteRange> to,
                                  std::span<const std::span<const uint8_t>> from) {
    return write(client, to, from);
  }

  /// As write_soon(), for a message that the QP receives whole, or the first or next part of it,
  /// and which completes in this step: the bytes may be written when the completion is taken.
  virtual MemoryResult write_received(ClientId client, QpNumber qp, bool is_first,
                                      std::span<const RemoteRange> to,
                                      std::span<const std::span<const uint8_t>> from) {
    static_cast<void>(qp);
    static_cast<void>(is_first);
    return write_soon(client, to, from);
  }

  /// How many completions the client has taken from the CQ since its creation (modulo 2^32). The
  /// client's word: it may be anything.
  virtual uint32_t completions_taken(ClientId client, CqId cq) = 0;
};

}  // namespace rocemu::engine
