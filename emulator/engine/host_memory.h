// The engine's view of application memory: a port, so that a replay can feed recorded bytes and a
// test can use an array.
#pragma once

#include <cstdint>
#include <span>

#include "emulator/engine/ids.h"

namespace rocemu::engine {

/// A range of a client's address space.
struct RemoteRange {
  uint64_t address;
  uint64_t length;
};

class HostMemory {
 public:
  virtual ~HostMemory() = default;

  /// Copies the ranges, one behind the other, into the buffers, one behind the other; both sides
  /// have the same total length. False if any byte could not be read (unmapped, protected, client
  /// gone); then the buffers' contents are unspecified.
  virtual bool read(ClientId client, std::span<const RemoteRange> from,
                    std::span<const std::span<uint8_t>> to) = 0;

  /// The other way. False if any byte could not be written; earlier ones may have been.
  virtual bool write(ClientId client, std::span<const RemoteRange> to,
                     std::span<const std::span<const uint8_t>> from) = 0;
};

}  // namespace rocemu::engine
