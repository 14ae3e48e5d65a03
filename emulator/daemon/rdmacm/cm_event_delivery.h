// Delivers the events of one rdma_cm event channel, as messages on its socket, in order. A socket
// holds a limited number of unread messages; further events wait here. The program does not report
// which events it has read: events that were sent and cannot be taken back count as read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "emulator/abi/ucma.h"

namespace rocemu::daemon {

class CmEvents {
 public:
  /// The maximum number of events that wait here for a program that does not read.
  static constexpr size_t kMaxWaiting = 100'000;

  using Event = abi::ucma::EventResponse;

  /// `socket` must outlive this object.
  explicit CmEvents(int socket) : socket_(socket) {}

  /// Sends an event, or lets it wait. Counts it for the id in its field `reserved`. Returns false
  /// if kMaxWaiting events wait already.
  bool deliver(const Event& event);

  /// Sends as many waiting events as there is space for. Returns whether some still wait.
  bool flush();
  bool waiting() const { return !waiting_.empty(); }

  /// Removes the unread events for which `wanted` returns true, and returns them in order.
  /// `client_end` is the program's own descriptor of the socket. If it is -1, the events in the
  /// socket count as read.
  std::vector<Event> take_back(int client_end, const std::function<bool(const Event&)>& wanted);

  /// The number of events of an id that the program has read or will read
  struct Reported {
    uint32_t all = 0;
    std::map<uint32_t, uint32_t>
        of_groups;  // those of its multicast groups, which are in `all` too
  };
  uint32_t reported(uint32_t id) const;
  /// Removes the count of an id and returns it, so that it can be passed to put_reported() of
  /// another channel if the id migrates.
  Reported take_reported(uint32_t id);
  void put_reported(uint32_t id, Reported reported);
  /// Removes the count of a multicast group and returns it. The events of the group no longer count
  /// for its id.
  uint32_t take_reported_of_group(uint32_t group);

 private:
  void count(const Event& event, uint32_t by);

  int socket_;
  std::deque<Event> waiting_;
  std::map<uint32_t, Reported> reported_;  // by id
  uint64_t delivered_ = 0;                 // ever, and not taken back
};

/// Returns the id for which an event is counted.
inline uint32_t counted_for(const abi::ucma::EventResponse& event) {
  return event.reserved;
}
inline bool is_multicast(const abi::ucma::EventResponse& event) {
  return event.event == abi::ucma::EventType::kMulticastJoin ||
         event.event == abi::ucma::EventType::kMulticastError;
}

}  // namespace rocemu::daemon
