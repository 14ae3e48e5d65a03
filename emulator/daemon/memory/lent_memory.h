// Memory of a client that it has lent: pages of memory files that are mapped here too, so that to
// reach them takes no system call. What is not in lent pages is ProcessMemory's.
//
// The client can write there at any time, and so can we: it only ever is data.
#pragma once

#include <span>
#include <vector>

#include "emulator/daemon/base/shared_memory.h"
#include "emulator/engine/base/host_memory.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class LentMemory {
 public:
  /// 0 or an errno value: EINVAL for a range that cannot be or overlaps another, a file that is not
  /// of its length or could be shrunk under our hands; ENOSPC for more than abi::kMaxLentPieces or
  /// abi::kMaxLentBytes.
  int add(const engine::RemoteRange& what, const UniqueFd& file);
  /// The piece that begins there; EINVAL if there is none.
  int remove(uint64_t address);
  bool empty() const { return pieces_.empty(); }

  /// Copies as HostMemory does if all ranges lie in lent memory; else does nothing and says false.
  bool copy(std::span<const engine::RemoteRange> from,
            std::span<const std::span<uint8_t>> to) const;
  /// The last eight bytes of each piece are written after the rest of it, so that a program which
  /// polls the last byte of a message finds all of it in place.
  bool copy(std::span<const engine::RemoteRange> to,
            std::span<const std::span<const uint8_t>> from) const;

 private:
  struct Piece {
    uint64_t address;
    SharedMemory memory;
  };

  std::byte* find(const engine::RemoteRange& range) const;
  template <class Bytes, class Copy>
  bool copy_all(std::span<const engine::RemoteRange> theirs, std::span<const std::span<Bytes>> ours,
                Copy copy_piece) const;

  std::vector<Piece> pieces_;  // by address
  uint64_t bytes_ = 0;
};

}  // namespace rocemu::daemon
