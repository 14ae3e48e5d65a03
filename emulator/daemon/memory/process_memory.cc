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
  if (way != Way::kNone) clients_.insert_or_assign(client, Client{std::move(reach)});
  return way;
}

void ProcessMemory::remove(engine::ClientId client) {
  clients_.erase(client);
}

int ProcessMemory::lend(engine::ClientId client, const engine::RemoteRange& what,
                        const UniqueFd& file) {
  const auto found = clients_.find(client);
  return found != clients_.end() ? found->second.lent.add(what, file) : EINVAL;
}

int ProcessMemory::take_back(engine::ClientId client, uint64_t address) {
  const auto found = clients_.find(client);
  return found != clients_.end() ? found->second.lent.remove(address) : EINVAL;
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
  const auto found = clients_.find(client);
  if (found == clients_.end()) return engine::MemoryResult::kGone;
  const Client& target = found->second;
  if (target.lent.copy(from, to)) return engine::MemoryResult::kDone;
  if (target.copier != nullptr) [[unlikely]] {
    return target.copier->read(from, to);
  }
  return target.reach.read(from, to, scratch_);
}

engine::MemoryResult ProcessMemory::write(engine::ClientId client,
                                          std::span<const engine::RemoteRange> to,
                                          std::span<const std::span<const uint8_t>> from) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return engine::MemoryResult::kGone;
  const Client& target = found->second;
  if (target.lent.copy(to, from)) return engine::MemoryResult::kDone;
  if (target.copier != nullptr) [[unlikely]] {
    return target.copier->write(to, from);
  }
  return target.reach.write(to, from, scratch_);
}

}  // namespace rocemu::daemon
