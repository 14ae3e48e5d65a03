// The memory that one client shares with the daemon. It consists of a few segments, each of which
// is a memory file that both map, and every queue is a piece of a segment. The number of queues is
// therefore not limited by the number of mappings or file descriptors, and creating a queue takes
// no system call.
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

/// The free parts of a range of bytes
class FreeRanges {
 public:
  struct Range {
    uint64_t begin, end;
  };

  explicit FreeRanges(uint64_t size) { insert({0, size}); }

  /// Takes the first bytes of the smallest part that is large enough.
  std::optional<uint64_t> take(uint64_t size);
  /// Returns the free part to which the range now belongs.
  Range give_back(Range range);

 private:
  void insert(Range range);

  std::map<uint64_t, uint64_t> by_begin_;            // the ends
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // with their beginnings
};

class Arena {
  class Segment;

 public:
  /// The maximum for one client, in bytes. Queues are sparse: only touched pages cost memory.
  static constexpr uint64_t kMaxBytes = uint64_t{256} << 30;
  /// Has space for payload (abi::Payload) and the queues of most programs.
  static constexpr uint64_t kFirstSegment = uint64_t{4} << 20;

  /// A part of a segment. Its arena must outlive it. It contains the data of earlier pieces, and
  /// starts at a cache line.
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
    /// The position of the piece for the client
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

  /// Returns nothing if the client would exceed its maximum, or if the system has no more memory;
  /// `size` must not be 0.
  std::optional<Piece> take(uint64_t size);

  struct SegmentFile {
    int fd;
    uint64_t size;
  };
  /// Returns the file for the client to map, or nothing if there is no such segment.
  std::optional<SegmentFile> file_of(uint32_t segment) const;

  /// Declares that all pieces will be destroyed: they need not be released one by one.
  void close();
  /// Releases up to `bytes` bytes of the arena's segments, in whole pages. May be called only once
  /// the arena is closed and has no pieces. Returns whether there are more.
  bool drop(uint64_t bytes);

 private:
  Segment* add_segment(uint64_t size);

  std::vector<std::unique_ptr<Segment>> segments_;  // by number
  uint64_t bytes_ = 0;                              // of all segments
};

}  // namespace rocemu::daemon
