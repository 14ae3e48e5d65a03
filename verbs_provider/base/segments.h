// The memory that the daemon shares with a context. It consists of a few segments
// (abi::SharedRange), each of which is mapped when the first object in it is looked up. They
// contain the queues of all objects.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/abi/control.h"
#include "verbs_provider/base/lock.h"
#include "verbs_provider/base/shared_memory.h"

namespace rocemu::provider {

/// A part of a segment. It stays mapped as long as the context is open.
class SharedPiece {
 public:
  SharedPiece() = default;
  SharedPiece(std::byte* data, uint64_t size) : data_(data), size_(size) {}

  uint64_t size() const { return size_; }
  std::byte* at(uint64_t offset) const { return data_ + offset; }

 private:
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

class Segments {
 public:
  Segments() = default;
  ~Segments();
  Segments(const Segments&) = delete;
  Segments& operator=(const Segments&) = delete;

  /// Maps a segment, unless another thread has mapped it. Returns 0 or a positive errno value.
  int add(uint32_t number, int fd, uint64_t size);
  /// Finds the memory of `range`. Returns 0, ENOENT if the segment is not mapped yet, or EIO if the
  /// segment cannot contain such a range.
  int find(const abi::SharedRange& range, SharedPiece* piece);

 private:
  struct Segment {
    uint32_t number = 0;
    SharedMemory memory;
    Segment* next = nullptr;
  };

  Segment* find(uint32_t number) const;

  Mutex lock_;
  Segment* first_ = nullptr;
};

}  // namespace rocemu::provider
