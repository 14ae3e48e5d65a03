// Handles are names: increasing numbers that are looked up, so that a stale or invented handle is
// refused and never dereferenced.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace rocemu::vipl {

template <class T>
class Handles {
 public:
  /// Starts the numbers with `kind`, which makes the handles of different kinds different. Its bits
  /// are above those of any address.
  explicit constexpr Handles(uint8_t kind) : last_(uint64_t{kind} << 56) {}

  void* add(std::shared_ptr<T> object) {
    const std::scoped_lock lock(mutex_);
    last_ += kStep;
    objects_.emplace(last_, std::move(object));
    return reinterpret_cast<void*>(last_);
  }
  /// Returns the object of the handle, or null if there is none.
  std::shared_ptr<T> find(const void* handle) {
    const std::scoped_lock lock(mutex_);
    const auto found = objects_.find(reinterpret_cast<uint64_t>(handle));
    return found == objects_.end() ? nullptr : found->second;
  }
  void remove(const void* handle) {
    const std::scoped_lock lock(mutex_);
    objects_.erase(reinterpret_cast<uint64_t>(handle));
  }
  std::vector<std::shared_ptr<T>> all() {
    const std::scoped_lock lock(mutex_);
    std::vector<std::shared_ptr<T>> result;
    for (const auto& [handle, object] : objects_) result.push_back(object);
    return result;
  }

 private:
  static constexpr uint64_t kStep = 16;  // old programs stored flags in the low bits of handles

  std::mutex mutex_;
  uint64_t last_;
  std::map<uint64_t, std::shared_ptr<T>> objects_;
};

}  // namespace rocemu::vipl
