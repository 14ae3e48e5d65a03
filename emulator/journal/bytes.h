// Writes and reads the fields of a journal's records, which are little-endian and follow each other
// without padding.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rocemu::journal {

static_assert(std::endian::native == std::endian::little);

using Bytes = std::span<const std::byte>;

/// The types that may be copied as bytes: integers, enumerations and the structs of emulator/abi.
template <class T>
concept Plain = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>;

/// Appends fields to a buffer.
class Appender {
 public:
  explicit Appender(std::vector<std::byte>& buffer) : buffer_(buffer) {}

  template <Plain T>
  void put(const T& value) {
    if constexpr (sizeof value == 1) {
      buffer_.push_back(std::bit_cast<std::byte>(value));
    } else {
      raw({reinterpret_cast<const std::byte*>(&value), sizeof value});
    }
  }
  /// Appends the number of bytes as a u32, and then the bytes.
  void bytes(Bytes bytes) {
    put(static_cast<uint32_t>(bytes.size()));
    raw(bytes);
  }
  void text(std::string_view text) { bytes(std::as_bytes(std::span(text))); }
  void raw_text(std::string_view text) { raw(std::as_bytes(std::span(text))); }
  void raw(Bytes bytes) { buffer_.insert(buffer_.end(), bytes.begin(), bytes.end()); }

  size_t position() const { return buffer_.size(); }
  /// Overwrites the value at this position in the buffer.
  void patch(size_t position, uint32_t value) {
    std::memcpy(buffer_.data() + position, &value, sizeof value);
  }

 private:
  std::vector<std::byte>& buffer_;
};

/// Reads fields from untrusted bytes. After a field that is missing or invalid, all further fields
/// are zero or empty. The caller must check failed() at the end, and before it uses a number as a
/// count.
class Taker {
 public:
  explicit Taker(Bytes bytes) : all_(bytes) {}

  template <Plain T>
  T take() {
    T value{};
    const Bytes field = raw(sizeof value);
    if (!failed_) std::memcpy(&value, field.data(), sizeof value);
    return value;
  }
  /// Reads an enumerator, and fails if it is greater than `last`.
  template <class Enum>
  Enum take_enum(Enum last) {
    const auto value = take<Enum>();
    if (value <= last) return value;
    fail();
    return Enum{};
  }
  Bytes bytes() { return raw(take<uint32_t>()); }
  std::string_view text() {
    const Bytes field = bytes();
    return {reinterpret_cast<const char*>(field.data()), field.size()};
  }
  Bytes raw(size_t size) {
    if (failed_ || size > all_.size() - position_) {
      fail();
      return {};
    }
    position_ += size;
    return all_.subspan(position_ - size, size);
  }

  void fail() { failed_ = true; }
  bool failed() const { return failed_; }
  bool at_end() const { return position_ == all_.size(); }
  size_t position() const { return position_; }

 private:
  Bytes all_;
  size_t position_ = 0;
  bool failed_ = false;
};

}  // namespace rocemu::journal
