// How far ahead of the NIC a thread has posted. Who has given it work for a long time need not
// watch it, and leaves his processor to those who do the work: where messages go over the network,
// that is two daemons.
#pragma once

#include <cstdint>

namespace rocemu::provider {

/// Of a thread, by the completions that it polls.
class Lead {
 public:
  /// So many send work requests have ended, and so many of the same QP have not.
  void sends_end(uint32_t requests, uint32_t ahead) {
    ended_ += requests;
    ahead_ = ahead;
  }
  /// It is sent messages, and may have to answer.
  void receives() { received_ = true; }
  /// It found nothing to poll. For how long the NIC still has work, in nanoseconds; 0 if that is
  /// not known or not all that it waits for.
  int64_t left_ns(int64_t now_ns);

 private:
  uint32_t ahead_ = 0;
  uint64_t ended_ = 0;  // since begin_ns_
  bool received_ = false;
  int64_t begin_ns_ = 0;
  int64_t each_ns_ = 0;  // what a request took before that; 0 if that is not known
  int64_t quiet_from_ns_ = 0;
};

Lead& lead();

}  // namespace rocemu::provider
