#include "emulator/daemon/memory/process_memory.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

namespace rocemu::daemon {

ProcessMemory::ProcessMemory() : returned_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

ProcessMemory::Way ProcessMemory::add(engine::ClientId client, pid_t pid, UniqueFd mem_file,
                                      bool prefer_mem_file) {
  MemoryReach reach(pid, std::move(mem_file), prefer_mem_file);
  const Way way = reach.way();
  if (way != Way::kNone) clients_.insert_or_assign(client, Client(std::move(reach)));
  return way;
}

void ProcessMemory::remove(engine::ClientId client) {
  clients_.erase(client);
}

int ProcessMemory::expect_waits(engine::ClientId client) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return EINVAL;
  Client& target = found->second;
  if (target.copier != nullptr) return 0;
  target.copier = PatientCopier::start(target.reach, returned_.get());
  return target.copier != nullptr ? 0 : ENOMEM;
}

engine::MemoryResult ProcessMemory::read(engine::ClientId client,
                                         std::span<const engine::RemoteRange> from,
                                         std::span<const std::span<uint8_t>> to) {
  Client* target = find(client);
  if (target == nullptr) return engine::MemoryResult::kGone;
  if (target->queue.overlaps(from)) target->queue.flush(target->reach, scratch_);
  if (target->copier != nullptr) [[unlikely]] {
    return target->copier->read(from, to);
  }
  return target->reach.read(from, to, scratch_);
}

engine::MemoryResult ProcessMemory::write(engine::ClientId client,
                                          std::span<const engine::RemoteRange> to,
                                          std::span<const std::span<const uint8_t>> from) {
  Client* target = find(client);
  if (target == nullptr) return engine::MemoryResult::kGone;
  target->queue.flush(target->reach, scratch_);  // a program may watch for the later of two
  if (target->copier != nullptr) [[unlikely]] {
    return target->copier->write(to, from);
  }
  return target->reach.write(to, from, scratch_);
}

engine::MemoryResult ProcessMemory::write_soon(engine::ClientId client,
                                               std::span<const engine::RemoteRange> to,
                                               std::span<const std::span<const uint8_t>> from) {
  Client* target = find(client);
  if (target == nullptr) return engine::MemoryResult::kGone;
  WriteQueue& queue = target->queue;
  if (target->copier != nullptr || !WriteQueue::may_wait(to)) {
    const engine::MemoryResult result = write(client, to, from);
    if (result != engine::MemoryResult::kFault) return result;
    return target->reach.write_pinned(to, from);
  }
  if (queue.is_full(to)) queue.flush(target->reach, scratch_);
  if (queue.empty()) waiting_.push_back(client);
  queue.add(to, from);
  return engine::MemoryResult::kDone;
}

void ProcessMemory::flush() {
  for (const engine::ClientId client : waiting_) {
    if (Client* target = find(client)) target->queue.flush(target->reach, scratch_);
  }
  waiting_.clear();
}

ProcessMemory::Client* ProcessMemory::find(engine::ClientId client) {
  const auto found = clients_.find(client);
  return found != clients_.end() ? &found->second : nullptr;
}

}  // namespace rocemu::daemon
