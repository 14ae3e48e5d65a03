// A small set of poll keys: addresses of polled objects. It is not a std::vector, which would
// require linking the C++ library (docs/adr/0004-provider-without-cxx-runtime.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace rocemu::provider {

class PollKeySet {
 public:
  PollKeySet() = default;
  ~PollKeySet() { free(keys_); }
  PollKeySet(const PollKeySet&) = delete;
  PollKeySet& operator=(const PollKeySet&) = delete;

  bool contains(const void* key) const {
    for (size_t i = 0; i < count_; ++i)
      if (keys_[i] == key) return true;
    return false;
  }

  /// Adds the key. Returns false if there is no memory for another key.
  bool add(const void* key) {
    if (count_ == capacity_) {
      const size_t capacity = capacity_ == 0 ? 8 : 2 * capacity_;
      auto* grown = static_cast<const void**>(realloc(keys_, capacity * sizeof(*keys_)));
      if (grown == nullptr) return false;
      keys_ = grown;
      capacity_ = capacity;
    }
    keys_[count_++] = key;
    return true;
  }

  void clear() { count_ = 0; }

  /// Returns the set of the calling thread, which exists until the thread ends, or null if memory
  /// is exhausted. It is not a thread_local, because destroying that requires the C++ library.
  static PollKeySet* of_this_thread();

  uint32_t round = 0;  // of these polls (DoorbellWriter::wait_for_round)

 private:
  const void** keys_ = nullptr;
  size_t count_ = 0;
  size_t capacity_ = 0;
};

}  // namespace rocemu::provider
