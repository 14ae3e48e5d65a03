// Objects by number. Numbers are given out in a fixed order and reused as late as possible, so that
// a stale handle, key or QPN names nothing rather than a stranger. Walks are in numeric order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace rocemu::engine {

template <class IdType, class T>
class Table {
 public:
  /// Numbers run from `first`; at most `limit` objects live at a time.
  Table(uint32_t first, uint32_t limit) : first_(first), limit_(limit) {}

  /// nullptr when the table is full. T's constructor gets the id, then the arguments.
  template <class... Args>
  T* create(Args&&... args) {
    if (size_ == limit_) return nullptr;
    uint32_t index;
    if (free_.size() > kQuarantine || slots_.size() == limit_) {
      index = free_.front();
      free_.pop_front();
    } else {
      index = static_cast<uint32_t>(slots_.size());
      slots_.emplace_back();
    }
    slots_[index] = std::make_unique<T>(IdType{first_ + index}, std::forward<Args>(args)...);
    ++size_;
    return slots_[index].get();
  }

  T* find(IdType id) const {
    const uint32_t index = id.value - first_;  // wraps to something huge below first_
    return index < slots_.size() ? slots_[index].get() : nullptr;
  }

  void destroy(IdType id) {
    const uint32_t index = id.value - first_;
    slots_[index].reset();
    free_.push_back(index);
    --size_;
  }

  /// The visitor may destroy the object it is given, and no other.
  template <class Visitor>
  void for_each(Visitor visit) const {
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i]) visit(*slots_[i]);
    }
  }

  size_t size() const { return size_; }

 private:
  /// A freed number rests while that many others are free.
  static constexpr size_t kQuarantine = 1024;

  uint32_t first_;
  uint32_t limit_;
  size_t size_ = 0;
  std::vector<std::unique_ptr<T>> slots_;
  std::deque<uint32_t> free_;
};

}  // namespace rocemu::engine
