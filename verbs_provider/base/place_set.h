// A few places in memory. Not a std::vector, of which the C++ library would have to be linked
// (docs/adr/0004-provider-without-cxx-runtime.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace rocemu::provider {

class PlaceSet {
 public:
  PlaceSet() = default;
  ~PlaceSet() { free(places_); }
  PlaceSet(const PlaceSet&) = delete;
  PlaceSet& operator=(const PlaceSet&) = delete;

  bool contains(const void* place) const {
    for (size_t i = 0; i < count_; ++i)
      if (places_[i] == place) return true;
    return false;
  }

  /// False if there is no memory for one more.
  bool add(const void* place) {
    if (count_ == capacity_) {
      const size_t capacity = capacity_ == 0 ? 8 : 2 * capacity_;
      auto* grown = static_cast<const void**>(realloc(places_, capacity * sizeof(*places_)));
      if (grown == nullptr) return false;
      places_ = grown;
      capacity_ = capacity;
    }
    places_[count_++] = place;
    return true;
  }

  void clear() { count_ = 0; }

  /// The calling thread's, until it ends; null without memory for it. Not a thread_local:
  /// destroying that takes the C++ library.
  static PlaceSet* of_this_thread();

  uint32_t round = 0;  // in which these are the places (DoorbellWriter::wait_for_round)

 private:
  const void** places_ = nullptr;
  size_t count_ = 0;
  size_t capacity_ = 0;
};

}  // namespace rocemu::provider
