// A frame in flight: one contiguous Ethernet frame (Ethernet, IP, UDP, BTH ... ICRC) in a buffer
// that returns to a pool when its last reference is released. References are counted without
// atomics: a pool and its frames belong to one thread.
//
// A frame from a device of the fabric carries its parsed packet as long as its bytes are not
// changed, so it need not be parsed. Its headers are written only when they are first read, which
// seldom happens inside a fabric.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "wire/packet.h"

namespace rocemu::engine {

class FramePool;

class Frame {
 public:
  /// The maximum size of a frame in bytes, rounded up: Ethernet 14, IPv6 40, UDP 8, BTH 12, largest
  /// extension headers 4+16+4+28, payload 4096, pad 3 and ICRC 4.
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

  /// Returns all bytes of the buffer, whatever the frame's size.
  std::span<uint8_t, kCapacity> storage() { return buffer_->bytes; }
  std::span<uint8_t> bytes() {
    write_headers();
    return {buffer_->bytes, buffer_->size};
  }
  std::span<const uint8_t> bytes() const {
    write_headers();
    return {buffer_->bytes, buffer_->size};
  }
  size_t size() const { return buffer_->size; }
  void set_size(size_t size) { buffer_->size = size; }

  /// Returns the packet that the frame carries, which equals the result of parse_frame(). Returns
  /// nullptr if the frame must be parsed.
  const wire::Packet* packet() const { return buffer_->parsed ? &buffer_->packet : nullptr; }
  /// Gives the frame the headers that wire::emit_headers() makes from the packet, and no ICRC. The
  /// payload is in place already, or the caller adds it.
  void set_packet(const wire::Packet& packet, size_t payload_size) {
    const size_t offset = wire::payload_offset(packet);
    buffer_->size = wire::frame_size(packet, payload_size);
    wire::Packet& own = buffer_->packet;
    own = packet;
    own.payload = std::span<const uint8_t>(buffer_->bytes).subspan(offset, payload_size);
    own.bth.pad_count =
        static_cast<uint8_t>(buffer_->size - offset - payload_size - wire::kIcrcSize);
    buffer_->parsed = true;
    buffer_->needs_headers = true;
  }

  /// Returns whether the payload is in the receiver's memory already, so that the frame has only
  /// space for it (transport/placement/direct_placement.h). Such a frame has a packet.
  bool is_placed() const { return buffer_->is_placed; }
  void set_placed() { buffer_->is_placed = true; }

 private:
  friend class FramePool;
  struct Buffer {
    FramePool* pool;
    uint32_t references;
    bool parsed;
    bool needs_headers;  // of `packet`
    bool is_placed;
    size_t size;
    wire::Packet packet;
    alignas(64) uint8_t bytes[kCapacity];
  };
  explicit Frame(Buffer* buffer) : buffer_(buffer) {}
  void write_headers() const {
    if (!buffer_->needs_headers) return;
    buffer_->needs_headers = false;
    wire::emit_headers(buffer_->packet, buffer_->packet.payload.size(), buffer_->bytes);
  }
  inline void release();

  Buffer* buffer_ = nullptr;
};

/// A pool of the buffers of frames. It must outlive its frames, grows on demand and never shrinks.
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
    buffer->parsed = buffer->needs_headers = buffer->is_placed = false;
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
