// The events of one rdma_cm event channel: messages on its socket, in order. A socket holds a
// limited number of unread messages; further ones wait here. The program does not report which
// events it has read: these are the events that were sent and cannot be taken back.
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
  /// The number of events that can wait here for a program that does not read.
  static constexpr size_t kMaxWaiting = 100'000;

  using Event = abi::ucma::EventResponse;

  /// `socket` must outlive this object.
  explicit CmEvents(int socket) : socket_(socket) {}

  /// Returns false if more than kMaxWaiting events wait. The event counts for the id in its
  /// `reserved`.
  bool deliver(const Event& event);

  /// Sends waiting events, as far as there is space. Returns whether some still wait.
  bool flush();
  bool waiting() const { return !waiting_.empty(); }

  /// Takes back the unread events for which `wanted` returns true, in order. `client_end` is the
  /// program's own descriptor of the socket; with -1 the events in the socket count as read.
  std::vector<Event> take_back(int client_end, const std::function<bool(const Event&)>& wanted);

  /// The number of events of an id that the program has read or will read.
  struct Reported {
    uint32_t all = 0;
    std::map<uint32_t, uint32_t>
        of_groups;  // those of its multicast groups, which are in `all` too
  };
  uint32_t reported(uint32_t id) const;
  /// Removes the count and returns it, for the channel to which the id's events move, if any.
  Reported take_reported(uint32_t id);
  void put_reported(uint32_t id, Reported reported);
  /// Does the same for one group, which no longer counts for its id.
  uint32_t take_reported_of_group(uint32_t group);

 private:
  void count(const Event& event, uint32_t by);

  int socket_;
  std::deque<Event> waiting_;
  std::map<uint32_t, Reported> reported_;  // by id
  uint64_t delivered_ = 0;                 // ever, and not taken back
};

/// Returns the id for which an event counts.
inline uint32_t counted_for(const abi::ucma::EventResponse& event) {
  return event.reserved;
}
inline bool is_multicast(const abi::ucma::EventResponse& event) {
  return event.event == abi::ucma::EventType::kMulticastJoin ||
         event.event == abi::ucma::EventType::kMulticastError;
}

}  // namespace rocemu::daemon
