// Objects by number. Numbers are given out in a fixed order and reused as late as possible, so that
// a stale handle, key or QPN names nothing rather than a stranger. Walks are in numeric order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace rocemu::engine {

/// Numbers in the order in which they became free. Those that follow each other, up or down, take
/// no more memory than one: a program that had many objects mostly destroys them in order.
class FreeNumbers {
 public:
  void push(uint32_t number) {
    if (!runs_.empty() && extend(runs_.back(), number)) {
      ++size_;
      return;
    }
    runs_.push_back({.next = number, .count = 1, .step = 1});
    ++size_;
  }
  /// The one that is free for the longest time. Not when there is none.
  uint32_t front() const { return runs_.front().next; }
  void pop() {
    Run& run = runs_.front();
    run.next += run.step;
    if (--run.count == 0) runs_.pop_front();
    --size_;
  }
  size_t size() const { return size_; }

 private:
  struct Run {
    uint32_t next, count;
    uint32_t step;  // 1, or -1 modulo 2^32
  };
  static bool extend(Run& run, uint32_t number) {
    if (run.count == 1 && number + 1 == run.next) run.step = UINT32_MAX;
    if (number != run.next + run.step * run.count) return false;
    ++run.count;
    return true;
  }

  std::deque<Run> runs_;
  size_t size_ = 0;
};

template <class IdType, class T>
class Table {
 public:
  /// Numbers run from `first`; at most `limit` objects live at a time.
  Table(uint32_t first, uint32_t limit) : first_(first), limit_(limit) {}

  /// nullptr when the table is full or there is no memory. T's constructor gets the id, then the
  /// arguments.
  template <class... Args>
  T* create(Args&&... args) {
    if (size_ == limit_) return nullptr;
    const bool reuses = free_.size() > kQuarantine || given_ == limit_;
    if (reuses && free_.size() == 0) return nullptr;  // some were lost: see destroy()
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
    const uint32_t index = id.value - first_;  // wraps to something huge below first_
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
    } catch (const std::bad_alloc&) {  // then the number is never used again
    }
  }

  /// The visitor may destroy the object it is given, and no other.
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
  /// A freed number rests while that many others are free.
  static constexpr size_t kQuarantine = 1024;
  /// Numbers that have their places together, and none while nothing has one of them.
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
