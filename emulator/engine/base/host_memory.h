// The engine's interface to application memory. It is abstract, so that a replay can supply
// recorded bytes and a test can use an array.
#pragma once

#include <cstdint>
#include <span>

#include "emulator/engine/base/ids.h"

namespace rocemu::engine {

/// A range of a client's address space.
struct RemoteRange {
  uint64_t address;
  uint64_t length;
  /// If true, the same bytes may have other addresses, in this client or another.
  bool is_shared = false;
  /// If true, the region has IBV_ACCESS_RELAXED_ORDERING. Only `--adversarial` uses it.
  bool is_relaxed = false;
};

enum class MemoryResult : uint8_t {
  kDone,
  kFault,  // some byte is not mapped, or is protected
  kGone,   // the process no longer exists
  /// The program has yet to provide the memory (userfaultfd(2), or a file system in user space). A
  /// read has read nothing. A write may be carried out later, but before any other access to the
  /// memory. A MemoryReady input arrives when the access should be retried.
  kNotYet,
};

/// Identifies a direct copy: the requester, and the first PSN of the packets whose payload is
/// copied.
struct CopyKey {
  QpNumber qp;
  uint32_t psn;
  bool operator==(const CopyKey&) const = default;
};

enum class CopyProgress : uint8_t {
  kNone,  // there is no such copy
  kUnderWay,
  kDone,
  kFailed,  // some bytes may have been copied
};

/// A copy from program to program. The ranges `source` and `target` have the same total length.
struct DirectCopy {
  CopyKey key;
  ClientId maker;  // the program that makes it: `from` or `to`
  ClientId from;
  std::span<const RemoteRange> source;
  ClientId to;
  std::span<const RemoteRange> target;
};

class HostMemory {
 public:
  virtual ~HostMemory() = default;

  /// Copies the bytes of the ranges, in order, into the buffers, in order. The ranges and the
  /// buffers have the same total length. Unless the result is kDone, the buffers' contents are
  /// unspecified.
  virtual MemoryResult read(ClientId client, std::span<const RemoteRange> from,
                            std::span<const std::span<uint8_t>> to) = 0;

  /// Does the same as read(), starting at byte `offset` of a message that the client also stored in
  /// the slot `slot` when it posted the message (abi::SendSlots). Memory and slot have the same
  /// contents as long as the message is not complete.
  virtual MemoryResult read_posted(ClientId client, uint32_t slot, uint64_t offset,
                                   std::span<const RemoteRange> from,
                                   std::span<const std::span<uint8_t>> to) {
    static_cast<void>(slot);
    static_cast<void>(offset);
    return read(client, from, to);
  }

  /// Copies the buffers into the ranges. If a byte could not be written, the bytes before it may
  /// have been written.
  virtual MemoryResult write(ClientId client, std::span<const RemoteRange> to,
                             std::span<const std::span<const uint8_t>> from) = 0;

  /// Does the same as write(), for memory that existed when it was registered and counts as pinned:
  /// if the memory no longer exists, the result is not kFault. The bytes may be written after the
  /// step.
  virtual MemoryResult write_soon(ClientId client, std::span<const RemoteRange> to,
                                  std::span<const std::span<const uint8_t>> from) {
    return write(client, to, from);
  }

  /// Does the same as write_soon(), for a message that the QP receives and that completes in this
  /// step. The message is written whole or in parts, in order; `is_first` is true for its first
  /// part. The bytes may be written when the program takes the completion.
  virtual MemoryResult write_received(ClientId client, QpNumber qp, bool is_first,
                                      std::span<const RemoteRange> to,
                                      std::span<const std::span<const uint8_t>> from) {
    static_cast<void>(qp);
    static_cast<void>(is_first);
    return write_soon(client, to, from);
  }

  /// Returns whether the client's program would be asked for a copy now.
  virtual bool may_copy(ClientId maker) {
    static_cast<void>(maker);
    return false;
  }
  /// Asks a program for a copy. A program makes its copies in order; if one fails, those after it
  /// fail, too, and copy nothing. Returns false if the engine must read and write the bytes
  /// instead. Otherwise a MemoryReady input arrives when the copy has ended.
  virtual bool begin_copy(const DirectCopy& copy) {
    static_cast<void>(copy);
    return false;
  }
  /// Returns the progress of a copy that the client makes.
  virtual CopyProgress copy_progress(ClientId maker, const CopyKey& key) {
    static_cast<void>(maker);
    static_cast<void>(key);
    return CopyProgress::kNone;
  }
  /// Forgets a copy that has ended.
  virtual void forget_copy(ClientId maker, const CopyKey& key) {
    static_cast<void>(maker);
    static_cast<void>(key);
  }

  /// Ends all copies. None of them is made after the call; those that are not done have failed.
  virtual void end_copies() {}
  /// Forgets the copies of a QP whose requests are discarded. They must have ended.
  virtual void forget_copies(ClientId maker, QpNumber qp) {
    static_cast<void>(maker);
    static_cast<void>(qp);
  }

  /// Returns the number of completions that the client has taken from the CQ since its creation
  /// (modulo 2^32). The number comes from the client, so it can be anything.
  virtual uint32_t completions_taken(ClientId client, CqId cq) = 0;
};

}  // namespace rocemu::engine
