// How far ahead of the NIC a thread has posted. A thread that has given the NIC work for a long
// time, or receives for many messages, need not watch it, and leaves its processor to those that do
// the work: two daemons where messages go over a network.
#pragma once

#include <cstdint>
#include <limits>

namespace rocemu::provider {

/// Of a thread, by the completions that it polls.
class Backlog {
 public:
  /// So many send work requests have ended, and so many of the same QP have not.
  void sends_end(uint32_t requests, uint32_t ahead) { sends_.end(requests, ahead); }
  /// So many receive work requests.
  void receives_end(uint32_t requests, uint32_t ahead) { receives_.end(requests, ahead); }
  /// It posts to a send queue, whichever thread may poll the completion.
  void sends() { sends_.is_fresh = true; }
  /// It found nothing to poll. So many completions may come before it is of use to look again; 0 if
  /// that is not known, or if it both sends and receives, so that a peer may wait for its reply.
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
    int64_t request_ns = 0, completion_ns = 0;  // what one took before that; 0 if that is not known
    bool is_fresh = false;                      // since the latest look
    int64_t latest_ns = std::numeric_limits<int64_t>::min() / 2;
  };

  Flow sends_, receives_;
};

Backlog& backlog();

}  // namespace rocemu::provider
