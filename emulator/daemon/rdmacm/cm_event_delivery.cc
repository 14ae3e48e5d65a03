#include "emulator/daemon/rdmacm/cm_event_delivery.h"

#include <sys/socket.h>

namespace rocemu::daemon {

bool CmEvents::deliver(const Event& event) {
  if (waiting_.size() >= kMaxWaiting) return false;
  count(event, 1);
  waiting_.push_back(event);
  flush();
  return true;
}

bool CmEvents::flush() {
  while (!waiting_.empty() && send(socket_, &waiting_.front(), sizeof(Event),
                                   MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(Event)) {
    waiting_.pop_front();
  }
  return !waiting_.empty();
}

std::vector<CmEvents::Event> CmEvents::take_back(int client_end,
                                                 const std::function<bool(const Event&)>& wanted) {
  std::vector<Event> taken;
  std::deque<Event> kept;
  const auto sort = [&](const Event& event) {
    if (wanted(event)) {
      count(event, static_cast<uint32_t>(-1));
      taken.push_back(event);
    } else {
      kept.push_back(event);
    }
  };
  // MSG_DONTWAIT is needed because the program controls the descriptor's flags. The loop must end
  // even if the socket is not ours and another process fills it continuously, so it reads at most
  // as many events as were sent.
  uint64_t most = delivered_;
  Event event{};
  while (client_end >= 0 && most-- > 0 &&
         recv(client_end, &event, sizeof event, MSG_DONTWAIT) == sizeof event) {
    sort(event);
  }
  for (const Event& later : waiting_) sort(later);
  waiting_ = std::move(kept);
  flush();
  return taken;
}

uint32_t CmEvents::reported(uint32_t id) const {
  const auto found = reported_.find(id);
  return found != reported_.end() ? found->second.all : 0;
}

CmEvents::Reported CmEvents::take_reported(uint32_t id) {
  const auto found = reported_.find(id);
  if (found == reported_.end()) return {};
  Reported reported = std::move(found->second);
  reported_.erase(found);
  return reported;
}

void CmEvents::put_reported(uint32_t id, Reported reported) {
  reported_[id] = std::move(reported);
}

uint32_t CmEvents::take_reported_of_group(uint32_t group) {
  for (auto& [id, reported] : reported_) {
    const auto found = reported.of_groups.find(group);
    if (found == reported.of_groups.end()) continue;
    const uint32_t count = found->second;
    reported.of_groups.erase(found);
    reported.all -= count;
    return count;
  }
  return 0;
}

void CmEvents::count(const Event& event, uint32_t by) {
  delivered_ += static_cast<uint64_t>(static_cast<int32_t>(by));
  if (event.event == abi::ucma::EventType::kGetEventFailed) return;  // no program acknowledges it
  Reported& reported = reported_[counted_for(event)];
  reported.all += by;
  if (is_multicast(event)) reported.of_groups[event.id] += by;
}

}  // namespace rocemu::daemon
