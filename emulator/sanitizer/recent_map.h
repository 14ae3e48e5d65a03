// A hash map that remembers the entry it found last. A program mostly posts to and polls the same
// object as in its previous call, and then no key is hashed.
#pragma once

#include <functional>
#include <unordered_map>
#include <utility>

namespace rocemu::sanitizer {

template <class Key, class T, class Hash = std::hash<Key>>
class RecentMap {
 public:
  RecentMap() = default;
  RecentMap(const RecentMap&) = delete;
  RecentMap& operator=(const RecentMap&) = delete;

  /// Returns null if there is no entry.
  T* find(const Key& key) {
    if (recent_ != nullptr && recent_->first == key) return &recent_->second;
    const auto found = map_.find(key);
    if (found == map_.end()) return nullptr;
    recent_ = &*found;
    return &recent_->second;
  }
  /// Returns the entry, which is added if there is none.
  T& operator[](const Key& key) {
    T* const found = find(key);
    return found != nullptr ? *found : map_[key];
  }
  void erase(const Key& key) {
    recent_ = nullptr;
    map_.erase(key);
  }
  template <class Is>
  void erase_if(Is is) {
    recent_ = nullptr;
    std::erase_if(map_, is);
  }

  auto begin() { return map_.begin(); }
  auto end() { return map_.end(); }
  auto begin() const { return map_.begin(); }
  auto end() const { return map_.end(); }

 private:
  std::unordered_map<Key, T, Hash> map_;
  std::pair<const Key, T>* recent_ = nullptr;  // entries do not move
};

}  // namespace rocemu::sanitizer
