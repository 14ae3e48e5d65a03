// The engine's copy of a work queue: WQEs of one stride, in order, each with a state. The ring
// grows with use up to its limit, so that an idle queue takes no memory.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace rocemu::engine {

/// The ring of WQEs. The index of a WQE is the number of WQEs posted before it since the queue's
/// creation (modulo 2^32). head() is the index of the oldest WQE, tail() that of the next WQE to be
/// posted.
template <class State>
class WorkRing {
 public:
  void configure(uint32_t limit, uint32_t stride) {
    limit_ = limit;
    stride_ = stride;
  }

  uint32_t limit() const { return limit_; }
  uint32_t stride() const { return stride_; }
  uint32_t head() const { return head_; }
  uint32_t tail() const { return tail_; }
  uint32_t size() const { return tail_ - head_; }
  bool empty() const { return head_ == tail_; }
  bool full() const { return size() == limit_; }

  /// Adds a WQE, at most one stride long. The ring must not be full.
  void push(std::span<const std::byte> wqe) {
    if (size() == states_.size()) grow();
    const size_t slot = slot_of(tail_);
    std::memcpy(&bytes_[slot * stride_], wqe.data(), wqe.size());
    states_[slot] = State{};
    ++tail_;
  }

  /// Adds the WQE in front of all others. The ring must not be full. In a queue that uses this
  /// function, indices have no meaning.
  void push_front(std::span<const std::byte> wqe) {
    if (size() == states_.size()) grow();
    --head_;
    std::memcpy(&bytes_[slot_of(head_) * stride_], wqe.data(), wqe.size());
    states_[slot_of(head_)] = State{};
  }

  /// Skips a WQE that was posted but must not be executed. The ring must be empty.
  void skip() { head_ = ++tail_; }
  void pop() { ++head_; }
  void clear() { head_ = tail_; }

  State& state(uint32_t index) { return states_[slot_of(index)]; }
  const State& state(uint32_t index) const { return states_[slot_of(index)]; }

  template <class Header>
  Header header(uint32_t index) const {
    Header header;
    std::memcpy(&header, &bytes_[slot_of(index) * stride_], sizeof(Header));
    return header;
  }
  /// Returns the bytes after the header in the WQE's slot.
  std::span<const std::byte> rest(uint32_t index, size_t header_size) const {
    return {&bytes_[slot_of(index) * stride_ + header_size], stride_ - header_size};
  }

 private:
  size_t slot_of(uint32_t index) const { return index & (states_.size() - 1); }

  void grow() {
    const size_t slots = std::max<size_t>(4, states_.size() * 2);
    std::vector<std::byte> bytes(slots * stride_);
    std::vector<State> states(slots);
    for (uint32_t i = head_; i != tail_; ++i) {
      std::memcpy(&bytes[(i & (slots - 1)) * stride_], &bytes_[slot_of(i) * stride_], stride_);
      states[i & (slots - 1)] = states_[slot_of(i)];
    }
    bytes_ = std::move(bytes);
    states_ = std::move(states);
  }

  uint32_t limit_ = 0;
  uint32_t stride_ = 0;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<State> states_;
};

}  // namespace rocemu::engine
