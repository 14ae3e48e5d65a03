#include "emulator/daemon/client/awake_sessions.h"

#include <algorithm>

namespace rocemu::daemon {
namespace {

/// A client counts as busy if it rang its doorbell within this time.
constexpr engine::Duration kNotLongAgo = std::chrono::microseconds(100);

}  // namespace

void AwakeSessions::reserve(size_t sessions) {
  for (auto* list : {&sessions_, &dozing_}) list->reserve(sessions);
}

void AwakeSessions::wake(ClientSession& session) {
  if (session.activity().awake || session.has_ended()) return;
  session.activity() = {clock_.real_now(), true};
  session.signals().set_daemon_sleeping(false);
  sessions_.push_back(&session);
}

void AwakeSessions::remove(const ClientSession& session) {
  std::erase(sessions_, &session);
  std::erase(dozing_, &session);
}

bool AwakeSessions::note_doorbells() {
  bool rang = false;
  for (ClientSession* session : sessions_) rang |= session->note_doorbells();
  return rang;
}

void AwakeSessions::take_receives() {
  for (size_t i = 0; i < sessions_.size(); ++i) sessions_[i]->take_receives();
}

bool AwakeSessions::pump() {
  bool worked = false;
  for (size_t i = 0; i < sessions_.size(); ++i) {
    if (sessions_[i]->pump()) {
      sessions_[i]->activity().last = clock_.real_now();
      rung_beside_ = sessions_[i]->signals().client_processor() == processor_;
      worked = true;
    }
  }
  return worked;
}

IdlePolicy::Clients AwakeSessions::recent(engine::Instant now) const {
  bool beside = false, elsewhere = false, gives_way = true;
  for (ClientSession* session : sessions_) {
    if (now - session->activity().last > kNotLongAgo || session->queues().expects_event) continue;
    const bool is_beside = session->signals().client_processor() == processor_;
    (is_beside ? beside : elsewhere) = true;
    if (is_beside) gives_way &= session->signals().gives_way();
  }
  return {.beside = beside,
          .elsewhere = elsewhere,
          .rung_beside = rung_beside_,
          .beside_gives_way = gives_way};
}

uint32_t AwakeSessions::yielding_threads() const {
  uint32_t yielding = 0;
  for (const ClientSession* session : sessions_)
    yielding += session->signals().threads_giving_way();
  return yielding;
}

void AwakeSessions::let_sleep(engine::Instant now, engine::Duration idle) {
  dozing_.clear();
  fell_asleep_ = now;
  std::erase_if(sessions_, [&](ClientSession* session) {
    if (now - session->activity().last < idle) return false;
    session->signals().set_daemon_sleeping(true);
    dozing_.push_back(session);
    return true;
  });
  for (ClientSession* session : dozing_) {
    session->activity().awake = false;
    if (session->signals().has_doorbells()) wake(*session);
  }
}

void AwakeSessions::wake_busy() {
  for (ClientSession* session : dozing_) {
    const engine::Instant last = session->activity().last;
    if (fell_asleep_ - last > kNotLongAgo) continue;
    wake(*session);
    session->activity().last = last;
  }
  dozing_.clear();
}

}  // namespace rocemu::daemon
