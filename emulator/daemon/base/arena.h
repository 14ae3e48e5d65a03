// The memory that one client shares with the daemon: a few segments, each a memory file that both
// map, and of which every queue is a piece. So the number of queues is not limited by that of
// mappings or file descriptors, and making one takes no system call.
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

/// The free parts of a range of bytes.
class FreeRanges {
 public:
  struct Range {
    uint64_t begin, end;
  };

  explicit FreeRanges(uint64_t size) { insert({0, size}); }

  /// Takes the first bytes of the smallest part that is large enough.
  std::optional<uint64_t> take(uint64_t size);
  /// Returns the free part that the range now belongs to.
  Range give_back(Range range);

 private:
  void insert(Range range);

  std::map<uint64_t, uint64_t> by_begin_;            // the ends
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // and where they begin
};

class Arena {
  class Segment;

 public:
  /// What one client can have, in bytes. Queues are sparse: only touched pages cost memory.
  static constexpr uint64_t kMaxBytes = uint64_t{256} << 30;
  /// Has room for payload (abi::Payload) and the queues of most programs.
  static constexpr uint64_t kFirstSegment = uint64_t{4} << 20;

  /// Of a segment, whose owner must outlive it. What is in it is left over from others; it begins
  /// at a cache line.
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
    /// Where the client finds it.
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

  /// Nothing if the client would have too much, or the system has no more; `size` must not be 0.
  std::optional<Piece> take(uint64_t size);

  struct SegmentFile {
    int fd;
    uint64_t size;
  };
  /// For the client to map; nothing if there is no such segment.
  std::optional<SegmentFile> file_of(uint32_t segment) const;

  /// All pieces are about to go: they need not be given back one by one.
  void close();
  /// Gives back so many bytes of its segments, whole pages. Only once it is closed and has no
  /// pieces any more. True if there are others.
  bool drop(uint64_t bytes);

 private:
  Segment* add_segment(uint64_t size);

  std::vector<std::unique_ptr<Segment>> segments_;  // by number
  uint64_t bytes_ = 0;                              // of all of them
};

}  // namespace rocemu::daemon
