// A small set of places in memory. It is not a std::vector, which would require linking the C++
// library (docs/adr/0004-provider-without-cxx-runtime.md).
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

  /// Adds the place. Returns false if there is no memory for another place.
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

  /// Returns the set of the calling thread, which exists until the thread ends, or null if memory
  /// is exhausted. It is not a thread_local, because destroying that requires the C++ library.
  static PlaceSet* of_this_thread();

  uint32_t round = 0;  // of these places (DoorbellWriter::wait_for_round)

 private:
  const void** places_ = nullptr;
  size_t count_ = 0;
  size_t capacity_ = 0;
};

}  // namespace rocemu::provider
