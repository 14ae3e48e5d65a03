#include "emulator/daemon/memory/direct_copies.h"

#include <algorithm>
#include <string>
#include <utility>

#include "emulator/os/proc.h"

namespace rocemu::daemon {
namespace {

/// Returns whether the process has our PID namespace, and no filter of system calls that we do not
/// have (seccomp(2)). Otherwise a number would name another process, or a call kill it.
bool may_copy(pid_t pid) {
  const std::string theirs = proc::contents_of(proc::directory_of(pid) + "/status");
  const std::string ours = proc::contents_of("/proc/self/status");
  for (const char* const field : {"Seccomp", "Seccomp_filters"}) {
    if (proc::field_of(theirs, field) != proc::field_of(ours, field)) return false;
  }
  const std::string space = proc::link_at(proc::directory_of(pid) + "/ns/pid");
  return !space.empty() && space == proc::link_at("/proc/self/ns/pid");
}

}  // namespace

void DirectCopies::add(engine::ClientId client, abi::CopyJobs& jobs, const abi::DoorbellRing& ring,
                       pid_t pid) {
  if (pid > 0 && may_copy(pid)) queues_.try_emplace(client, jobs, ring, pid);
}

void DirectCopies::remove(engine::ClientId client) {
  end_of(client);
  queues_.erase(client);
}

bool DirectCopies::may_begin(engine::ClientId maker) {
  CopyQueue* queue = may_begin_ && !is_suspended_ ? find(maker) : nullptr;
  return queue != nullptr && queue->may_begin();
}

bool DirectCopies::begin(const engine::DirectCopy& copy) {
  CopyQueue* maker = find(copy.maker);
  const CopyQueue* peer = find(copy.maker == copy.to ? copy.from : copy.to);
  if (!may_begin_ || is_suspended_ || maker == nullptr || peer == nullptr ||
      !maker->begin(copy, *peer)) {
    return false;
  }
  if (std::ranges::find(copying_, copy.maker) == copying_.end()) copying_.push_back(copy.maker);
  return true;
}

engine::CopyProgress DirectCopies::progress(engine::ClientId maker,
                                            const engine::CopyKey& key) const {
  const CopyQueue* queue = find(maker);
  return queue != nullptr ? queue->progress(key) : engine::CopyProgress::kNone;
}

void DirectCopies::forget(engine::ClientId maker, const engine::CopyKey& key) {
  if (CopyQueue* queue = find(maker)) queue->forget(key);
}

void DirectCopies::forget(engine::ClientId maker, engine::QpNumber qp) {
  if (CopyQueue* queue = find(maker)) queue->forget(qp);
}

void DirectCopies::end() {
  for (const engine::ClientId client : copying_) {
    CopyQueue* queue = find(client);
    if (queue == nullptr || !queue->is_any_under_way()) continue;
    queue->end();
    have_ended_ = true;
  }
}

bool DirectCopies::end_of(engine::ClientId client) {
  bool any = false;
  for (const engine::ClientId maker : copying_) {
    CopyQueue* queue = find(maker);
    if (queue == nullptr || !queue->is_any_under_way()) continue;
    if (maker != client && !queue->has_peer(client)) continue;
    queue->end();
    any = true;
  }
  have_ended_ |= any;
  return any;
}

bool DirectCopies::awaits_any() const {
  return have_ended_ || std::ranges::any_of(copying_, [this](engine::ClientId client) {
           const CopyQueue* queue = find(client);
           return queue != nullptr && queue->is_any_under_way();
         });
}

bool DirectCopies::update(engine::Instant now) {
  bool have_ended = std::exchange(have_ended_, false);
  std::erase_if(copying_, [&](engine::ClientId client) {
    CopyQueue* queue = find(client);
    if (queue == nullptr) return true;
    have_ended |= queue->update(now);
    return queue->empty();
  });
  return have_ended;
}

CopyQueue* DirectCopies::find(engine::ClientId client) {
  const auto found = queues_.find(client);
  return found != queues_.end() ? &found->second : nullptr;
}

const CopyQueue* DirectCopies::find(engine::ClientId client) const {
  const auto found = queues_.find(client);
  return found != queues_.end() ? &found->second : nullptr;
}

}  // namespace rocemu::daemon
