// Measures how far ahead of the NIC a thread has posted. A thread that has given the NIC work for a
// long time, or receives for many messages, need not watch the NIC. It leaves its processor to the
// threads that do the work: those of the daemon, or of two daemons if messages go over a network.
#pragma once

#include <cstdint>
#include <limits>

namespace rocemu::provider {

/// The backlog of a thread, measured by the completions that it polls
class Backlog {
 public:
  /// Notes that `requests` send work requests have ended, and that `ahead` later ones of the same
  /// QP are outstanding.
  void sends_end(uint32_t requests, uint32_t ahead) { sends_.end(requests, ahead); }
  /// Notes that `requests` receive work requests have ended, and that `ahead` later ones of the
  /// same queue are outstanding.
  void receives_end(uint32_t requests, uint32_t ahead) { receives_.end(requests, ahead); }
  /// Notes that the thread posts to a send queue. Any thread may poll the completion.
  void sends() { sends_.is_fresh = true; }
  /// Notes that the thread's poll found nothing. Returns the number of completions to wait for
  /// before polling again is useful. Returns 0 if that is not known, or if the thread both sends
  /// and receives, so that a peer may wait for its reply.
  uint32_t completions_to_await(int64_t now_ns);

 private:
  struct Flow {
    void end(uint32_t requests, uint32_t still_ahead) {
      ended += requests;
      ++completions;
      ahead = still_ahead;
      is_fresh = true;
    }
    void look(int64_t now_ns);
    uint32_t completions_to_await() const;

    uint32_t ahead = 0;
    uint32_t completions = 0;  // since begin_ns
    uint64_t ended = 0;
    int64_t begin_ns = 0;
    int64_t request_ns = 0,
            completion_ns = 0;  // the time of one before begin_ns; 0 if it is not known
    bool is_fresh = false;      // since the latest query
    int64_t latest_ns = std::numeric_limits<int64_t>::min() / 2;
  };

  Flow sends_, receives_;
};

Backlog& backlog();

}  // namespace rocemu::provider
