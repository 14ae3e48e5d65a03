// The objects of a client by their numbers, in pages of adjacent numbers. If very many objects were
// in a plain hash table, its rehashing would delay this client and all others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

namespace rocemu::daemon {

template <class T>
class ObjectMap {
 public:
  /// Returns the object with this number; null if there is none.
  T* find(uint32_t number) const {
    const auto page = pages_.find(number / kPage);
    return page != pages_.end() ? page->second.objects[number % kPage].get() : nullptr;
  }
  /// Inserts an object, which replaces any object with the same number.
  T& insert(uint32_t number, T object) {
    auto made = std::make_unique<T>(std::move(object));
    Page& page = pages_[number / kPage];
    std::unique_ptr<T>& place = page.objects[number % kPage];
    if (place == nullptr) {
      ++page.used;
      ++size_;
    }
    place = std::move(made);
    return *place;
  }
  /// Erases the object with this number, which must exist.
  void erase(uint32_t number) {
    const auto page = pages_.find(number / kPage);
    page->second.objects[number % kPage].reset();
    --size_;
    if (--page->second.used == 0) pages_.erase(page);
  }
  /// Erases a page of objects, and returns how many there were; 0 if the map is empty.
  uint32_t erase_some() {
    if (pages_.empty()) return 0;
    const uint32_t count = pages_.begin()->second.used;
    pages_.erase(pages_.begin());
    size_ -= count;
    return count;
  }

  /// Calls `what` for each object, in no particular order.
  void for_each(auto&& what) const {
    for (const auto& [number, page] : pages_) {
      for (const std::unique_ptr<T>& object : page.objects) {
        if (object != nullptr) what(*object);
      }
    }
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// Releases memory that the map still uses for erased objects.
  void shrink() {
    if (pages_.bucket_count() / 8 > pages_.size()) pages_.rehash(0);
  }

 private:
  static constexpr uint32_t kPage = 16;
  struct Page {
    std::array<std::unique_ptr<T>, kPage> objects;
    uint32_t used = 0;
  };

  std::unordered_map<uint32_t, Page> pages_;
  size_t size_ = 0;
};

}  // namespace rocemu::daemon
