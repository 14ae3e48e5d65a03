// The CQs in which completions have arrived lately. A thread that has posted far ahead may wait
// there for several completions, and must be woken when no more arrive.
#pragma once

#include <utility>
#include <vector>

#include "emulator/daemon/client/session_table.h"

namespace rocemu::daemon {

class WatchedCqs {
 public:
  explicit WatchedCqs(SessionTable& sessions) : sessions_(sessions) {}

  /// Adds a CQ of which CompletionQueue::publish() returned true.
  void add(engine::ClientId client, engine::CqId cq) { cqs_.emplace_back(client, cq); }

  bool empty() const { return cqs_.empty(); }

  /// Wakes the threads that wait in the CQs, which are then no longer watched. Must be called when
  /// no more completions arrive for now.
  void end_all() {
    for (const auto& [client, id] : cqs_) {
      if (CompletionQueue* cq = sessions_.find_cq(client, id)) cq->unwatch();
    }
    cqs_.clear();
  }

  /// Does the same for the CQs without completions since the latest call. Must be called from time
  /// to time.
  void end_quiet() {
    std::erase_if(cqs_, [&](const auto& entry) {
      CompletionQueue* cq = sessions_.find_cq(entry.first, entry.second);
      if (cq == nullptr) return true;
      if (cq->has_progressed()) return false;
      cq->unwatch();
      return true;
    });
  }

 private:
  SessionTable& sessions_;
  std::vector<std::pair<engine::ClientId, engine::CqId>> cqs_;
};

}  // namespace rocemu::daemon
