// The events of one rdma_cm event channel: messages on its socket, in order. A socket holds a
// limited number of unread messages; the rest waits here. Which events the program has read nobody
// says; it is what was sent and cannot be taken back.
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
  /// Events that may wait here for a program that does not read.
  static constexpr size_t kMaxWaiting = 100'000;

  using Event = abi::ucma::EventResponse;

  /// `socket` must outlive this.
  explicit CmEvents(int socket) : socket_(socket) {}

  /// False if more than kMaxWaiting events wait. Counted for the id in the event's `reserved`.
  bool deliver(const Event& event);

  /// Sends what waits, as far as there is room; true if something still waits.
  bool flush();
  bool waiting() const { return !waiting_.empty(); }

  /// Takes back the events that have not been read and for which `wanted` is true, in their order.
  /// `client_end` is the program's own descriptor of the socket; with -1 what is in the socket
  /// counts as read.
  std::vector<Event> take_back(int client_end, const std::function<bool(const Event&)>& wanted);

  /// How many events of an id the program has read or will read.
  struct Reported {
    uint32_t all = 0;
    std::map<uint32_t, uint32_t>
        of_groups;  // those of its multicast groups, which are in `all` too
  };
  uint32_t reported(uint32_t id) const;
  /// Forgets it; to be put where the id's events are from now on, if anywhere.
  Reported take_reported(uint32_t id);
  void put_reported(uint32_t id, Reported reported);
  /// Of one group, which no longer counts for its id.
  uint32_t take_reported_of_group(uint32_t group);

 private:
  void count(const Event& event, uint32_t by);

  int socket_;
  std::deque<Event> waiting_;
  std::map<uint32_t, Reported> reported_;  // by id
  uint64_t delivered_ = 0;                 // ever, and not taken back
};

/// The id that an event is counted for.
inline uint32_t counted_for(const abi::ucma::EventResponse& event) {
  return event.reserved;
}
inline bool is_multicast(const abi::ucma::EventResponse& event) {
  return event.event == abi::ucma::EventType::kMulticastJoin ||
         event.event == abi::ucma::EventType::kMulticastError;
}

}  // namespace rocemu::daemon
