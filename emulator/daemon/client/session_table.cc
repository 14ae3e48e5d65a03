#include "emulator/daemon/client/session_table.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace rocemu::daemon {
namespace {

/// Returns the sessions sorted by their ids.
template <class Session, class Sessions>
std::vector<Session*> in_order(const Sessions& sessions) {
  std::vector<Session*> ordered;
  for (const auto& [id, session] : sessions) ordered.push_back(session.get());
  std::ranges::sort(ordered, {}, [](const Session* session) { return session->id(); });
  return ordered;
}

}  // namespace

void SessionTable::add(std::unique_ptr<ClientSession> session) {
  const engine::ClientId id = session->id();
  const bool ended = session->has_ended();
  sessions_.emplace(id, std::move(session));
  // Memory is reserved now, because waking or removing a session must not allocate any.
  awake_.reserve(sessions_.size());
  ended_.reserve(sessions_.size());
  if (!ended) silent_.add(*sessions_.at(id), clock_.real_now());
}

ClientSession* SessionTable::find(engine::ClientId id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

CompletionQueue* SessionTable::find_cq(engine::ClientId client, engine::CqId cq) {
  ClientSession* session = find(client);
  return session != nullptr ? session->queues().cqs.find(cq.value) : nullptr;
}

ClientSession* SessionTable::find_by_client_end(const FileId& client_end) {
  for (const auto& [id, session] : sessions_) {
    if (!session->has_ended() && session->client_end() == client_end) return session.get();
  }
  return nullptr;
}

bool SessionTable::pump() {
  if (awake_.note_doorbells()) take_receives();
  return awake_.pump();
}

void SessionTable::count_pollers(engine::Instant now) {
  pollers_.note(awake_.yielding_threads());
  if (!pollers_.is_due(now, sessions_.size())) return;
  uint32_t active = 0;
  for (const auto& [id, session] : sessions_) {
    if (now - session->activity().last <= PollerCount::kPollsSince) ++active;
  }
  if (!pollers_.count(now, active)) return;
  for (const auto& [id, session] : sessions_)
    session->signals().set_pollers_per_processor(pollers_.per_processor());
}

void SessionTable::take_receives() {
  // A sleeping session must be woken if its client has rung, because the daemon may not have read
  // the client's eventfd yet.
  for (const auto& [id, session] : sessions_) {
    if (!session->activity().awake && session->signals().has_doorbells()) wake(*session);
  }
  awake_.take_receives();
}

bool SessionTable::pump_in_order() {
  const auto sessions = in_order<ClientSession>(sessions_);
  for (ClientSession* session : sessions) session->note_doorbells();
  bool worked = false;
  for (ClientSession* session : sessions) worked |= session->pump_by_object();
  return worked;
}

size_t SessionTable::wake_pollers() {
  size_t most = 0;
  for (const auto& [id, session] : sessions_) {
    const auto& cqs = session->queues().cqs;
    bool slept = false;
    cqs.for_each([&](CompletionQueue& cq) { slept |= cq.wake_waiting(); });
    if (slept) most = std::max(most, cqs.size());
  }
  return most;
}

uint32_t SessionTable::completions_taken() const {
  uint32_t taken = 0;
  for (const auto& [id, session] : sessions_) {
    session->queues().cqs.for_each([&](const CompletionQueue& cq) { taken += cq.consumed(); });
  }
  return taken;
}

void SessionTable::begin_round() {
  ++round_;
  for (const auto& [id, session] : sessions_) session->signals().begin_round(round_, clock_.now());
}

void SessionTable::set_asked_for(uint32_t operations) {
  if (operations == asked_for_) return;
  asked_for_ = operations;
  for (const auto& [id, session] : sessions_) session->signals().set_asked_for(operations);
}

bool SessionTable::reap(EnginePort& engine, ProcessMemory& memory) {
  if (!remains_.empty() && !remains_.front().dismantle()) remains_.pop_front();
  if (ended_.empty()) return !remains_.empty();
  // When one session is detached, another may end; it is appended to the list.
  for (size_t i = 0; i < ended_.size(); ++i) {
    const auto found = sessions_.find(ended_[i]);
    if (found == sessions_.end()) continue;
    ClientSession& session = *found->second;
    if (session.end_reason().empty()) {
      spdlog::debug("{} left", session.description());
    } else {
      spdlog::warn("{} ended: {}", session.description(), session.end_reason());
    }
    if (session.is_attached()) engine.submit(engine::DetachClient{session.id()});
    memory.remove(session.id());
    silent_.remove(session);
    awake_.remove(session);
    remains_.push_back(session.take_queues());
    destroyed_ += remains_.back().size();
    if (!remains_.back().dismantle()) remains_.pop_back();
    sessions_.erase(found);
  }
  ended_.clear();
  return true;
}

void SessionTable::shrink() {
  for (const auto& [id, session] : sessions_) session->queues().shrink();
}

std::vector<const ClientSession*> SessionTable::list() const {
  return in_order<const ClientSession>(sessions_);
}

}  // namespace rocemu::daemon
