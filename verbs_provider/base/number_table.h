// A context's objects by number: the objects to which completions belong are found here.
//
// Looking up an object takes no lock, since poll_cq of several CQs runs at the same time. The
// comments in Context::Parts say what keeps an object of each kind alive while it is used.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "verbs_provider/base/lock.h"

namespace rocemu::provider {

template <class T>
class NumberTable {
 public:
  NumberTable() = default;
  ~NumberTable() {
    for (std::atomic<Leaf*>& leaf : leaves_) free(leaf.load(std::memory_order_relaxed));
  }
  NumberTable(const NumberTable&) = delete;
  NumberTable& operator=(const NumberTable&) = delete;

  /// Adds the object. Returns false if memory is exhausted, or the number does not fit into 24
  /// bits.
  bool insert(uint32_t number, T* object) {
    if (number >> (2 * kBits) != 0) return false;
    {
      const Guard guard(growing_);
      std::atomic<Leaf*>& leaf = leaves_[number >> kBits];
      if (leaf.load(std::memory_order_relaxed) == nullptr) {
        void* memory = calloc(1, sizeof(Leaf));
        if (memory == nullptr) return false;
        leaf.store(new (memory) Leaf{}, std::memory_order_release);
      }
    }
    slot(number)->store(object, std::memory_order_release);
    return true;
  }

  /// Removes the object, unless another object has taken over the number.
  void remove(uint32_t number, T* object) {
    std::atomic<T*>* entry = slot(number);
    if (entry == nullptr) return;
    entry->compare_exchange_strong(object, nullptr, std::memory_order_acq_rel);
  }

  T* find(uint32_t number) const {
    const std::atomic<T*>* entry = slot(number);
    return entry == nullptr ? nullptr : entry->load(std::memory_order_acquire);
  }

 private:
  static constexpr uint32_t kBits = 12;
  static constexpr uint32_t kSize = 1u << kBits;
  struct Leaf {
    std::atomic<T*> objects[kSize];
  };

  std::atomic<T*>* slot(uint32_t number) const {
    if (number >> (2 * kBits) != 0) return nullptr;
    Leaf* leaf = leaves_[number >> kBits].load(std::memory_order_acquire);
    return leaf == nullptr ? nullptr : &leaf->objects[number % kSize];
  }

  std::atomic<Leaf*> leaves_[kSize] = {};
  Mutex growing_;
};

}  // namespace rocemu::provider
