// Whether anything is still to come of what was asked for. What is merely remembered for a while,
// as timewait is, does not count.
#include "emulator/engine/fabric.h"

namespace rocemu::engine {

bool Fabric::is_idle() const {
  if (!leaving_.empty() || !link_.empty() || !schedule_.empty() || faults.next_deadline() ||
      completions_.has_events() || connections.awaits_answer()) {
    return false;
  }
  bool idle = true;
  qps.for_each([&](const QueuePair& qp) {
    for (const Timer& timer : qp.timers) idle = idle && !timer.deadline;
  });
  return idle;
}

namespace cm {

bool ConnectionManager::awaits_answer() const {
  return table_.any([](const Connection& connection) {
    switch (connection.state) {
      case State::kReqSent:
      case State::kRepSent:
      case State::kDreqSent:
      case State::kSidrReqSent:
        return true;
      case State::kRepReceived:
      case State::kReqReceived:
      case State::kEstablished:
      case State::kDreqReceived:
      case State::kTimewait:
      case State::kClosed:
      case State::kSidrReqReceived:
        break;
    }
    return false;
  });
}

}  // namespace cm
}  // namespace rocemu::engine
