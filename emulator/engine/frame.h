// A frame in flight: one contiguous Ethernet frame (Ethernet, IP, UDP, BTH ... ICRC) in a buffer
// that a pool takes back when the last reference goes. References are counted without atomics: a
// pool and its frames belong to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace rocemu::engine {

class FramePool;

class Frame {
 public:
  /// Ethernet 14, IPv6 40, UDP 8, BTH 12, largest extension headers 4+16+4+28, payload 4096, pad 3,
  /// ICRC 4, rounded up.
  static constexpr size_t kCapacity = 4096 + 192;

  Frame() = default;
  Frame(const Frame& other) : buffer_(other.buffer_) {
    if (buffer_ != nullptr) ++buffer_->references;
  }
  Frame(Frame&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  Frame& operator=(Frame other) noexcept {
    std::swap(buffer_, other.buffer_);
    return *this;
  }
  ~Frame() { release(); }

  explicit operator bool() const { return buffer_ != nullptr; }

  /// All bytes that the buffer can hold, whatever the frame's size.
  std::span<uint8_t, kCapacity> storage() { return buffer_->bytes; }
  std::span<uint8_t> bytes() { return {buffer_->bytes, buffer_->size}; }
  std::span<const uint8_t> bytes() const { return {buffer_->bytes, buffer_->size}; }
  void set_size(size_t size) { buffer_->size = size; }

 private:
  friend class FramePool;
  struct Buffer {
    FramePool* pool;
    uint32_t references;
    size_t size;
    alignas(64) uint8_t bytes[kCapacity];
  };
  explicit Frame(Buffer* buffer) : buffer_(buffer) {}
  inline void release();

  Buffer* buffer_ = nullptr;
};

/// Must outlive its frames. Grows on demand and keeps what it has.
class FramePool {
 public:
  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  Frame allocate() {
    if (free_.empty()) grow();
    Frame::Buffer* buffer = free_.back();
    free_.pop_back();
    buffer->references = 1;
    buffer->size = 0;
    return Frame(buffer);
  }

 private:
  friend class Frame;
  void grow() {
    all_.push_back(std::unique_ptr<Frame::Buffer>(new Frame::Buffer));
    all_.back()->pool = this;
    free_.reserve(all_.capacity());
    free_.push_back(all_.back().get());
  }
  void take_back(Frame::Buffer* buffer) { free_.push_back(buffer); }

  std::vector<std::unique_ptr<Frame::Buffer>> all_;
  std::vector<Frame::Buffer*> free_;
};

inline void Frame::release() {
  if (buffer_ != nullptr && --buffer_->references == 0) buffer_->pool->take_back(buffer_);
}

}  // namespace rocemu::engine
