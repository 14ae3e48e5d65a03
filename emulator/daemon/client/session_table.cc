#include "emulator/daemon/client/session_table.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "emulator/daemon/base/descriptors.h"

namespace rocemu::daemon {
namespace {

/// A client that rang within that time is in the middle of something.
constexpr engine::Duration kNotLongAgo = std::chrono::microseconds(100);
/// How often it is counted how many threads poll; and for each client so much more seldom that it
/// stays a hundredth of our time.
constexpr engine::Duration kPollersInterval = std::chrono::milliseconds(1);
constexpr engine::Duration kPollersIntervalEach = std::chrono::microseconds(10);
/// A client that rang within that time has a thread that polls.
constexpr engine::Duration kPollsSince = std::chrono::milliseconds(1);
/// Connections without a hello, and a quarter of what descriptors there are at most.
constexpr size_t kMaxSilent = 1024;
/// A program may be stopped between connecting and its hello, by a debugger for example.
constexpr engine::Duration kMaxSilence = std::chrono::seconds(30);

}  // namespace

void SessionTable::add(std::unique_ptr<ClientSession> session) {
  const engine::ClientId id = session->id();
  const bool ended = session->has_ended();
  sessions_.emplace(id, std::move(session));
  // To wake one, or to let it go, must not need memory.
  for (auto* list : {&awake_, &dozing_}) list->reserve(sessions_.size());
  ended_.reserve(sessions_.size());
  if (ended) return;
  silent_.emplace(id, clock_.real_now());
  if (silent_.size() > std::min(kMaxSilent, descriptor_limit() / 4)) end_oldest_silent();
}

void SessionTable::end_oldest_silent() {
  const auto [id, since] = *silent_.begin();
  if (!std::exchange(told_of_silent_, true)) {
    spdlog::warn(
        "connections that say no hello are ended: {} is the first, and there may be many more",
        sessions_.at(id)->description());
  }
  silent_.erase(silent_.begin());
  sessions_.at(id)->end("");
}

void SessionTable::end_silent(engine::Instant now) {
  while (!silent_.empty() && now - silent_.begin()->second >= kMaxSilence) end_oldest_silent();
}

std::optional<engine::Instant> SessionTable::next_silent_end() const {
  if (silent_.empty()) return std::nullopt;
  return silent_.begin()->second + kMaxSilence;
}

ClientSession* SessionTable::find(engine::ClientId id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

CompletionQueue* SessionTable::find_cq(engine::ClientId client, engine::CqId cq) {
  ClientSession* session = find(client);
  return session != nullptr ? session->queues().cqs.find(cq.value) : nullptr;
}

void SessionTable::wake(ClientSession& session) {
  if (session.activity().awake || session.has_ended()) return;
  session.activity() = {clock_.real_now(), true};
  session.set_daemon_sleeping(false);
  awake_.push_back(&session);
}

ClientSession* SessionTable::find_by_client_end(const FileId& client_end) {
  for (const auto& [id, session] : sessions_) {
    if (!session->has_ended() && session->client_end() == client_end) return session.get();
  }
  return nullptr;
}

bool SessionTable::pump() {
  bool rang = false;
  for (ClientSession* session : awake_) rang |= session->note_doorbells();
  if (rang) take_receives();
  bool worked = false;
  // By index: a session's outputs may wake others, which then have their turn in this round too.
  for (size_t i = 0; i < awake_.size(); ++i) {
    if (awake_[i]->pump()) {
      awake_[i]->activity().last = clock_.real_now();
      rung_beside_ = awake_[i]->client_processor() == processor_;
      worked = true;
    }
  }
  return worked;
}

IdlePolicy::Clients SessionTable::recent(engine::Instant now) const {
  bool beside = false, elsewhere = false, gives_way = true;
  for (ClientSession* session : awake_) {
    if (now - session->activity().last > kNotLongAgo || session->queues().expects_event) continue;
    const bool is_beside = session->client_processor() == processor_;
    (is_beside ? beside : elsewhere) = true;
    if (is_beside) gives_way &= session->gives_way();
  }
  return {.beside = beside,
          .elsewhere = elsewhere,
          .rung_beside = rung_beside_,
          .beside_gives_way = gives_way};
}

void SessionTable::count_pollers(engine::Instant now) {
  uint32_t yielding = 0;
  for (const ClientSession* session : awake_) yielding += session->threads_giving_way();
  most_yielding_ = std::max(most_yielding_, yielding);
  const auto clients = static_cast<int64_t>(sessions_.size());
  if (now - counted_pollers_ < kPollersInterval + clients * kPollersIntervalEach) return;
  counted_pollers_ = now;
  // Those that wait for events yield before they do: at each moment only some of them.
  uint32_t active = 0;
  for (const auto& [id, session] : sessions_) {
    if (now - session->activity().last <= kPollsSince) ++active;
  }
  const uint32_t counted = std::max(std::exchange(most_yielding_, 0u), active);
  pollers_ = std::max(counted, pollers_ - (pollers_ + 7) / 8);
  const uint32_t each = (pollers_ + processors_ - 1) / processors_;
  if (std::exchange(pollers_per_processor_, each) == each) return;
  for (const auto& [id, session] : sessions_) session->set_pollers_per_processor(each);
}

void SessionTable::take_receives() {
  // One that sleeps may have posted, and its eventfd not be read.
  for (const auto& [id, session] : sessions_) {
    if (!session->activity().awake && session->has_doorbells()) wake(*session);
  }
  for (size_t i = 0; i < awake_.size(); ++i) awake_[i]->take_receives();
}

std::vector<ClientSession*> SessionTable::in_order() {
  std::vector<ClientSession*> sessions;
  for (const auto& [id, session] : sessions_) sessions.push_back(session.get());
  std::sort(sessions.begin(), sessions.end(),
            [](const auto* a, const auto* b) { return a->id() < b->id(); });
  return sessions;
}

bool SessionTable::pump_in_order() {
  const std::vector<ClientSession*> sessions = in_order();
  for (ClientSession* session : sessions) session->note_doorbells();
  bool worked = false;
  for (ClientSession* session : sessions) worked |= session->pump_by_object();
  return worked;
}

void SessionTable::wake_waiting() {
  for (const auto& [client, id] : waiting_) {
    if (CompletionQueue* cq = find_cq(client, id)) static_cast<void>(cq->wake_waiting());
  }
  waiting_.clear();
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
  for (const auto& [id, session] : sessions_) session->begin_round(round_, clock_.now());
}

void SessionTable::set_asked_for(uint32_t operations) {
  if (operations == asked_for_) return;
  asked_for_ = operations;
  for (const auto& [id, session] : sessions_) session->set_asked_for(operations);
}

void SessionTable::let_sleep(engine::Instant now, engine::Duration idle) {
  dozing_.clear();
  fell_asleep_ = now;
  std::erase_if(awake_, [&](ClientSession* session) {
    if (now - session->activity().last < idle) return false;
    session->set_daemon_sleeping(true);
    dozing_.push_back(session);
    return true;
  });
  for (ClientSession* session : dozing_) {
    session->activity().awake = false;
    if (session->has_doorbells()) wake(*session);
  }
}

void SessionTable::wake_busy() {
  for (ClientSession* session : dozing_) {
    const engine::Instant last = session->activity().last;
    if (fell_asleep_ - last > kNotLongAgo) continue;
    wake(*session);
    session->activity().last = last;
  }
  dozing_.clear();
}

bool SessionTable::reap(EnginePort& engine, ProcessMemory& memory) {
  if (!remains_.empty() && !remains_.front().dismantle()) remains_.pop_front();
  if (ended_.empty()) return !remains_.empty();
  // Detaching one may end another, which is appended.
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
    silent_.erase(session.id());
    std::erase(awake_, &session);
    std::erase(dozing_, &session);
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
  std::vector<const ClientSession*> sessions;
  for (const auto& [id, session] : sessions_) sessions.push_back(session.get());
  std::sort(sessions.begin(), sessions.end(),
            [](const auto* a, const auto* b) { return a->id() < b->id(); });
  return sessions;
}

}  // namespace rocemu::daemon
