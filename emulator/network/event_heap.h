// A heap of the events of a simulated network, ordered by time. An event has 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rocemu::network {

struct NetworkEvent {
  uint64_t time_ps = 0;
  uint32_t order = 0;  // orders events of the same time
  uint32_t value = 0;

  bool before(const NetworkEvent& other) const {
    return time_ps != other.time_ps ? time_ps < other.time_ps : order < other.order;
  }
};

/// A heap in which each node has four children: it has half as many levels as with two children,
/// and siblings share a cache line.
class EventHeap {
 public:
  bool empty() const { return events_.empty(); }
  const NetworkEvent& top() const { return events_.front(); }

  void push(const NetworkEvent& event) {
    size_t i = events_.size();
    events_.push_back(event);
    while (i > 0) {
      const size_t parent = (i - 1) / 4;
      if (!event.before(events_[parent])) break;
      events_[i] = events_[parent];
      i = parent;
    }
    events_[i] = event;
  }

  void pop() {
    const NetworkEvent last = events_.back();
    events_.pop_back();
    const size_t size = events_.size();
    if (size == 0) return;
    size_t i = 0;
    while (true) {
      const size_t first = 4 * i + 1;
      if (first >= size) break;
      const size_t end = first + 4 < size ? first + 4 : size;
      size_t least = first;
      for (size_t child = first + 1; child < end; ++child)
        if (events_[child].before(events_[least])) least = child;
      if (!events_[least].before(last)) break;
      events_[i] = events_[least];
      i = least;
    }
    events_[i] = last;
  }

 private:
  std::vector<NetworkEvent> events_;
};

}  // namespace rocemu::network
