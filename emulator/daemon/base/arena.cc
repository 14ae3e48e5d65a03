#include "emulator/daemon/base/arena.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <new>
#include <thread>

#include "emulator/daemon/base/descriptors.h"

namespace rocemu::daemon {
namespace {

constexpr uint64_t kAlignment = 64;  // a cache line, as the rings require

/// Returns the size of a page, which can be 16 or 64 KiB on arm64. Memory can be released only in
/// whole pages.
uint64_t page_size() {
  static const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return size;
}

constexpr uint64_t round_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr uint64_t round_down(uint64_t value, uint64_t multiple) {
  return value / multiple * multiple;
}

/// The size above which a file is closed by a separate thread. Closing its last descriptor blocks,
/// because the system frees the memory page by page.
constexpr int64_t kMuchMemory = 16 << 20;

void close_file(UniqueFd file) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || status.st_blocks * 512 < kMuchMemory) return;
  try {
    std::thread([held = std::move(file)] {}).detach();
  } catch (const std::exception&) {  // no thread can be started: the file is closed by now
  }
}

}  // namespace

// ---- FreeRanges -----------------------------------------------------------------------------

void FreeRanges::insert(Range range) {
  if (range.begin == range.end) return;
  const auto made = by_begin_.emplace(range.begin, range.end).first;
  try {
    by_size_.emplace(range.end - range.begin, range.begin);
  } catch (const std::bad_alloc&) {
    by_begin_.erase(made);
    throw;
  }
}

std::optional<uint64_t> FreeRanges::take(uint64_t size) {
  const auto found = by_size_.lower_bound({size, 0});
  if (found == by_size_.end()) return std::nullopt;
  const auto [free, begin] = *found;
  // The free part's nodes in both containers are reused for the part that remains, so no memory is
  // allocated and this cannot fail.
  auto range = by_begin_.extract(begin);
  auto entry = by_size_.extract(found);
  if (free == size) return begin;
  range.key() = begin + size;
  by_begin_.insert(std::move(range));
  entry.value() = {free - size, begin + size};
  by_size_.insert(std::move(entry));
  return begin;
}

FreeRanges::Range FreeRanges::give_back(Range range) {
  const auto remove = [this](std::map<uint64_t, uint64_t>::iterator at) {
    by_size_.erase({at->second - at->first, at->first});
    by_begin_.erase(at);
  };
  if (const auto next = by_begin_.find(range.end); next != by_begin_.end()) {
    range.end = next->second;
    remove(next);
  }
  if (const auto behind = by_begin_.lower_bound(range.begin); behind != by_begin_.begin()) {
    const auto previous = std::prev(behind);
    if (previous->second == range.begin) {
      range.begin = previous->first;
      remove(previous);
    }
  }
  insert(range);
  return range;
}

// ---- Segment --------------------------------------------------------------------------------

class Arena::Segment {
 public:
  Segment(uint32_t number, NewSharedMemory memory)
      : number_(number),
        memory_(std::move(memory.memory)),
        file_(std::move(memory.file)),
        free_(memory_.size()) {}
  ~Segment() { close_file(std::move(file_)); }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::optional<Piece> take(uint64_t size) {
    const std::optional<uint64_t> offset = free_.take(size);
    if (!offset) return std::nullopt;
    used_ += size;
    return Piece(*this, memory_.data() + *offset, size);
  }

  void give_back(const std::byte* data, uint64_t size) {
    if (closed_) return;
    const auto begin = static_cast<uint64_t>(data - memory_.data());
    used_ -= size;
    try {
      // If no piece is in use any more, the whole segment is free, including parts that could not
      // be recorded as free.
      if (used_ == 0) free_ = FreeRanges(memory_.size());
      const FreeRanges::Range free = used_ == 0 ? FreeRanges::Range{0, memory_.size()}
                                                : free_.give_back({begin, begin + size});
      give_pages_back(free, {begin, begin + size});
    } catch (const std::bad_alloc&) {  // lost until nothing is in use
    }
  }

  void close() { closed_ = true; }
  /// Unmaps the last `bytes` bytes, or all if there are fewer. Returns the number of bytes that
  /// were unmapped.
  uint64_t drop(uint64_t bytes) {
    const uint64_t before = memory_.size();
    memory_.unmap_end(bytes);
    return before - memory_.size();
  }

  uint32_t number() const { return number_; }
  uint64_t offset_of(const std::byte* data) const {
    return static_cast<uint64_t>(data - memory_.data());
  }
  SegmentFile file() const { return {file_.get(), memory_.size()}; }

 private:
  /// Returns to the system the pages that are completely in the free range `free` and overlap
  /// `gone`, the range that was released last.
  void give_pages_back(FreeRanges::Range free, FreeRanges::Range gone) {
    const uint64_t page = page_size();
    const uint64_t begin = std::max(round_up(free.begin, page), round_down(gone.begin, page));
    const uint64_t end = std::min(round_down(free.end, page), round_up(gone.end, page));
    if (begin < end) madvise(memory_.data() + begin, end - begin, MADV_REMOVE);
  }

  uint32_t number_;
  SharedMemory memory_;
  UniqueFd file_;
  FreeRanges free_;
  uint64_t used_ = 0;  // bytes
  bool closed_ = false;
};

Arena::Piece::~Piece() {
  if (segment_ != nullptr) segment_->give_back(data_, size_);
}

abi::SharedRange Arena::Piece::range() const {
  return {.offset = segment_->offset_of(data_),
          .size = size_,
          .segment = segment_->number(),
          .reserved = 0};
}

// ---- Arena ----------------------------------------------------------------------------------

Arena::Arena() = default;
Arena::Arena(Arena&&) noexcept = default;
Arena& Arena::operator=(Arena&&) noexcept = default;
Arena::~Arena() = default;

std::optional<Arena::Piece> Arena::take(uint64_t size) {
  if (size > kMaxBytes) return std::nullopt;
  size = round_up(size, kAlignment);
  try {
    for (const auto& segment : segments_) {
      if (std::optional<Piece> piece = segment->take(size)) return piece;
    }
    // Each segment adds at least a quarter of the memory of all earlier ones, so that there are few
    // segments. If the system lacks that much memory, the segment is only as large as the piece.
    const uint64_t least = round_up(size, page_size());
    Segment* segment = add_segment(std::max({least, bytes_ / 4, kFirstSegment}));
    if (segment == nullptr) segment = add_segment(least);
    return segment != nullptr ? segment->take(size) : std::nullopt;
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

Arena::Segment* Arena::add_segment(uint64_t size) {
  size = round_up(size, page_size());
  if (size > kMaxBytes - bytes_) return nullptr;
  std::optional<NewSharedMemory> memory = NewSharedMemory::create("rocemu", size);
  if (!memory) return nullptr;
  // A client gets its first segment even if few descriptors are left.
  if (!segments_.empty() && leaves_few(memory->file.get())) return nullptr;
  segments_.push_back(
      std::make_unique<Segment>(static_cast<uint32_t>(segments_.size()), std::move(*memory)));
  bytes_ += size;
  return segments_.back().get();
}

std::optional<Arena::SegmentFile> Arena::file_of(uint32_t segment) const {
  if (segment >= segments_.size()) return std::nullopt;
  return segments_[segment]->file();
}

void Arena::close() {
  for (const auto& segment : segments_) segment->close();
}

bool Arena::drop(uint64_t bytes) {
  while (!segments_.empty() && bytes > 0) {
    bytes -= segments_.back()->drop(bytes);
    if (segments_.back()->file().size == 0) segments_.pop_back();
  }
  return !segments_.empty();
}

}  // namespace rocemu::daemon
