// A table of objects by number. Numbers are assigned in a fixed order and not reused for a long
// time, so that a stale handle, key or QPN identifies no object rather than another object.
// Iteration is in numeric order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace rocemu::engine {

/// The free numbers. When a number is freed, it rests first: it is not assigned until kResting
/// other numbers have been freed, unless there is no other free number. Free numbers that do not
/// rest are assigned in ascending order; after the largest, assignment continues with the smallest.
/// They are stored as ranges, at most one between two numbers in use. Resting numbers are stored
/// one by one.
class FreeNumbers {
 public:
  void push(uint32_t number) {
    const uint32_t before = std::exchange(resting_[pushed_++ % kResting], number);
    if (pushed_ - popped_ <= kResting) return;
    ++popped_;
    insert(before);
  }
  /// Returns the next number to assign, which must exist.
  uint32_t front() const {
    return rested_.empty() ? resting_[popped_ % kResting] : next_rested()->first;
  }
  void pop() {
    if (rested_.empty()) {
      ++popped_;
      return;
    }
    // The rest of the range keeps the range's map node, because the allocation of a new node could
    // fail.
    auto range = rested_.extract(next_rested());
    cursor_ = range.key() + 1;
    if (cursor_ == range.mapped()) return;
    range.key() = cursor_;
    rested_.insert(std::move(range));
  }
  bool empty() const { return rested_.empty() && pushed_ == popped_; }
  /// Returns whether there is a free number that does not rest, so that it can be assigned.
  bool has_rested() const { return !rested_.empty(); }

 private:
  static constexpr uint32_t kResting = 1024;
  using Ranges = std::map<uint32_t, uint32_t>;  // the ends, by their beginnings

  Ranges::const_iterator next_rested() const {
    const auto next = rested_.lower_bound(cursor_);
    return next != rested_.end() ? next : rested_.begin();
  }

  void insert(uint32_t number) {
    const auto next = rested_.upper_bound(number);
    const bool reaches_next = next != rested_.end() && next->first == number + 1;
    if (next != rested_.begin()) {
      if (const auto previous = std::prev(next); previous->second == number) {
        previous->second = reaches_next ? next->second : number + 1;
        if (reaches_next) rested_.erase(next);
        return;
      }
    }
    if (!reaches_next) {
      rested_.emplace_hint(next, number, number + 1);
      return;
    }
    auto range = rested_.extract(next);
    range.key() = number;
    rested_.insert(std::move(range));
  }

  std::array<uint32_t, kResting> resting_{};
  uint32_t pushed_ = 0, popped_ = 0;  // modulo 2^32
  Ranges rested_;
  uint32_t cursor_ = 0;  // after the number that was taken last
};

template <class IdType, class T>
class Table {
 public:
  /// Numbers start at `first`. At most `limit` objects exist at a time.
  Table(uint32_t first, uint32_t limit) : first_(first), limit_(limit) {}

  /// Creates an object. Returns nullptr if the table is full or memory is exhausted. T's
  /// constructor gets the id, followed by the arguments.
  template <class... Args>
  T* create(Args&&... args) {
    if (size_ == limit_) return nullptr;
    const bool reuses = free_.has_rested() || given_ == limit_;
    if (reuses && free_.empty()) return nullptr;  // some were lost: see destroy()
    const uint32_t index = reuses ? free_.front() : given_;
    try {
      auto object = std::make_unique<T>(IdType{first_ + index}, std::forward<Args>(args)...);
      if (index / kLeaf >= leaves_.size()) leaves_.resize(index / kLeaf + 1);
      std::unique_ptr<Leaf>& leaf = leaves_[index / kLeaf];
      if (leaf == nullptr) leaf = std::make_unique<Leaf>();
      ++leaf->used;
      leaf->objects[index % kLeaf] = std::move(object);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    if (reuses) {
      free_.pop();
    } else {
      ++given_;
    }
    ++size_;
    return leaves_[index / kLeaf]->objects[index % kLeaf].get();
  }

  T* find(IdType id) const {
    const uint32_t index = id.value - first_;  // wraps to a huge value below first_
    if (index >= given_) return nullptr;
    const Leaf* leaf = leaves_[index / kLeaf].get();
    return leaf != nullptr ? leaf->objects[index % kLeaf].get() : nullptr;
  }

  void destroy(IdType id) {
    const uint32_t index = id.value - first_;
    std::unique_ptr<Leaf>& leaf = leaves_[index / kLeaf];
    leaf->objects[index % kLeaf].reset();
    if (--leaf->used == 0) leaf.reset();
    --size_;
    try {
      free_.push(index);
    } catch (const std::bad_alloc&) {  // the number is never used again
    }
  }

  /// Calls the visitor with each object. The visitor may destroy that object, but no other.
  template <class Visitor>
  void for_each(Visitor visit) const {
    for (const std::unique_ptr<Leaf>& leaf : leaves_) {
      for (size_t i = 0; leaf != nullptr && i < kLeaf; ++i) {
        if (leaf->objects[i]) visit(*leaf->objects[i]);
      }
    }
  }

  size_t size() const { return size_; }
  uint32_t limit() const { return limit_; }

 private:
  /// The number of consecutive entries that are allocated together, as long as one of them is in
  /// use
  static constexpr uint32_t kLeaf = 256;
  struct Leaf {
    std::array<std::unique_ptr<T>, kLeaf> objects;
    uint32_t used = 0;
  };

  uint32_t first_;
  uint32_t limit_;
  uint32_t given_ = 0;  // numbers that have ever been in use
  size_t size_ = 0;
  std::vector<std::unique_ptr<Leaf>> leaves_;
  FreeNumbers free_;
};

}  // namespace rocemu::engine
