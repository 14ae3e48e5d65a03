// The memory that one client shares with the daemon. It consists of a few segments. Each segment is
// a memory file that client and daemon map, and every queue is a piece of a segment. The number of
// queues is therefore not limited by the number of mappings or file descriptors, and creating a
// queue takes no system call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "emulator/abi/control.h"
#include "emulator/daemon/base/shared_memory.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

/// The free parts of a segment, which is a range of bytes
class FreeRanges {
 public:
  struct Range {
    uint64_t begin, end;
  };

  explicit FreeRanges(uint64_t size) { insert({0, size}); }

  /// Removes `size` bytes from the smallest free part that is large enough. Returns their
  /// beginning; nothing if no part is large enough.
  std::optional<uint64_t> take(uint64_t size);
  /// Makes the range free again. Returns the free part that contains it.
  Range give_back(Range range);

 private:
  void insert(Range range);

  std::map<uint64_t, uint64_t> by_begin_;            // the ends
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // with their beginnings
};

class Arena {
  class Segment;

 public:
  /// The maximum size of a client's arena, in bytes. Segments are sparse: only touched pages cost
  /// memory.
  static constexpr uint64_t kMaxBytes = uint64_t{256} << 30;
  /// The minimum size of a segment. A segment of this size has space for payload (abi::Payload) and
  /// for the queues of most programs.
  static constexpr uint64_t kFirstSegment = uint64_t{4} << 20;

  /// A part of a segment, aligned to a cache line. It still contains the data of earlier pieces.
  /// The arena must outlive it.
  class Piece {
   public:
    Piece() = default;
    Piece(Piece&& other) noexcept { swap(other); }
    Piece& operator=(Piece&& other) noexcept {
      swap(other);
      return *this;
    }
    ~Piece();

    std::byte* data() const { return data_; }
    uint64_t size() const { return size_; }
    /// Returns the segment and the offset at which the client finds the piece.
    abi::SharedRange range() const;

   private:
    friend class Arena;
    Piece(Segment& segment, std::byte* data, uint64_t size)
        : segment_(&segment), data_(data), size_(size) {}
    void swap(Piece& other) {
      std::swap(segment_, other.segment_);
      std::swap(data_, other.data_);
      std::swap(size_, other.size_);
    }

    Segment* segment_ = nullptr;
    std::byte* data_ = nullptr;
    uint64_t size_ = 0;
  };

  Arena();
  Arena(Arena&&) noexcept;
  Arena& operator=(Arena&&) noexcept;
  ~Arena();

  /// Returns a new piece. Returns nothing if the client would exceed its maximum, or if the system
  /// has no more memory. `size` must not be 0.
  std::optional<Piece> take(uint64_t size);

  struct SegmentFile {
    int fd;
    uint64_t size;
  };
  /// Returns the file of a segment, which the client maps; nothing if there is no such segment.
  std::optional<SegmentFile> file_of(uint32_t segment) const;

  /// Notes that all pieces are about to be destroyed, so that none of them needs to be made free.
  void close();
  /// Unmaps up to `bytes` bytes of the segments. May be called only once the arena is closed and
  /// has no pieces. Returns whether some segments are left.
  bool drop(uint64_t bytes);

 private:
  Segment* add_segment(uint64_t size);

  std::vector<std::unique_ptr<Segment>> segments_;  // by number
  uint64_t bytes_ = 0;                              // of all segments
};

}  // namespace rocemu::daemon
