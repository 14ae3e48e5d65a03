// A short list that is stored in place. It has space for many entries but nearly always contains
// one, so only the present entries are ever written or copied.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

namespace rocemu::engine {

template <class T, size_t kMax>
class BoundedList {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  BoundedList() {}  // not defaulted: `{}` would set all of it to zero
  BoundedList(const BoundedList& other) { *this = other; }
  BoundedList& operator=(const BoundedList& other) {
    if (this != &other) std::memcpy(bytes_, other.bytes_, other.size_ * sizeof(T));
    size_ = other.size_;
    return *this;
  }

  /// Adds an entry. The list must have fewer than `kMax` entries.
  void push_back(const T& value) { std::construct_at(data() + size_++, value); }
  /// Replaces all entries; `bytes` contains at most `kMax` entries.
  void assign(std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(bytes_, bytes.data(), bytes.size());
    size_ = bytes.size() / sizeof(T);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](size_t index) const { return data()[index]; }
  const T* data() const { return reinterpret_cast<const T*>(bytes_); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  T* data() { return reinterpret_cast<T*>(bytes_); }

  size_t size_ = 0;
  alignas(T) std::byte bytes_[kMax * sizeof(T)];
};

}  // namespace rocemu::engine
