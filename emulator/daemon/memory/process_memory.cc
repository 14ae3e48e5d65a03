#include "emulator/daemon/memory/process_memory.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
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

bool ProcessMemory::waits() const {
  return std::ranges::any_of(clients_, [](const auto& entry) {
    const auto& copier = entry.second.copier;
    return copier != nullptr && copier->is_busy();
  });
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
  settle(*target, from);
  if (target->queue.overlaps(from)) target->queue.flush(target->reach, scratch_);
  if (target->copier != nullptr) [[unlikely]] {
    return target->copier->read(from, to);
  }
  return target->reach.read(from, to, scratch_);
}

engine::MemoryResult ProcessMemory::read_posted(engine::ClientId client, uint32_t slot,
                                                uint64_t offset,
                                                std::span<const engine::RemoteRange> from,
                                                std::span<const std::span<uint8_t>> to) {
  const Client* source = find(client);
  if (source == nullptr) return engine::MemoryResult::kGone;
  uint64_t bytes_wanted = 0;
  for (const std::span<uint8_t> part : to) bytes_wanted += part.size();
  constexpr uint64_t kMaxBytes = abi::SendSlots::kMaxBytes;
  const bool is_there = uses_send_slots_ && source->sent != nullptr &&
                        slot < abi::SendSlots::kCount && offset <= kMaxBytes &&
                        bytes_wanted <= kMaxBytes - offset;
  if (!is_there) return read(client, from, to);  // the client's word
  const uint8_t* bytes = source->sent->bytes[slot] + offset;
  for (const std::span<uint8_t> part : to) {
    std::memcpy(part.data(), bytes, part.size());
    bytes += part.size();
  }
  return engine::MemoryResult::kDone;
}

engine::MemoryResult ProcessMemory::write(engine::ClientId client,
                                          std::span<const engine::RemoteRange> to,
                                          std::span<const std::span<const uint8_t>> from) {
  Client* target = find(client);
  if (target == nullptr) return engine::MemoryResult::kGone;
  ++writes_;
  settle(*target, to);
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
  if (target->copier != nullptr || !WriteQueue::may_wait(to)) {
    const engine::MemoryResult result = write(client, to, from);
    if (result != engine::MemoryResult::kFault) return result;
    return target->reach.write_pinned(to, from);
  }
  settle(*target, to);
  enqueue(client, *target, to, from);
  return engine::MemoryResult::kDone;
}

engine::MemoryResult ProcessMemory::write_received(engine::ClientId client, engine::QpNumber qp,
                                                   bool is_first,
                                                   std::span<const engine::RemoteRange> to,
                                                   std::span<const std::span<const uint8_t>> from) {
  Client* target = find(client);
  if (target == nullptr) return engine::MemoryResult::kGone;
  if (target->copier != nullptr) return write_soon(client, to, from);
  const bool was_any = target->received.is_any_unattached();
  if (!target->received.add(qp, is_first, to, from)) return write_soon(client, to, from);
  if (!was_any) unattached_.push_back(client);
  return engine::MemoryResult::kDone;
}

void ProcessMemory::enqueue(engine::ClientId client, Client& target,
                            std::span<const engine::RemoteRange> to,
                            std::span<const std::span<const uint8_t>> from) {
  ++writes_;
  if (target.queue.is_full(to)) target.queue.flush(target.reach, scratch_);
  if (target.queue.empty()) waiting_.push_back(client);
  target.queue.add(to, from);
}

/// As to memory that is pinned.
void ProcessMemory::write_now(const Client& target, std::span<const engine::RemoteRange> to,
                              std::span<const uint8_t> bytes) {
  const std::array<std::span<const uint8_t>, 1> all{bytes};
  if (target.reach.write(to, all, scratch_) == engine::MemoryResult::kFault) {
    target.reach.write_pinned(to, all);
  }
}

/// Before those bytes are read, or others are written there: what was received before is there.
void ProcessMemory::settle(Client& target, std::span<const engine::RemoteRange> ranges) {
  if (!target.received.may_overlap(ranges)) [[likely]] {
    return;
  }
  target.queue.flush(target.reach, scratch_);  // those came before
  const auto write = [&](std::span<const engine::RemoteRange> to, std::span<const uint8_t> bytes) {
    write_now(target, to, bytes);
  };
  target.received.withdraw(ranges, write);
  target.received.spill(write);
}

void ProcessMemory::flush() {
  for (const engine::ClientId client : waiting_) {
    if (Client* target = find(client)) target->queue.flush(target->reach, scratch_);
  }
  waiting_.clear();
}

uint8_t ProcessMemory::attach_payload(engine::ClientId client, const abi::Cqe& cqe, engine::CqId cq,
                                      uint32_t index) {
  if (unattached_.empty()) return 0;
  Client* target = find(client);
  if (target == nullptr) return 0;
  const uint8_t slot = target->received.attach(
      cqe, cq, index, [&](std::span<const engine::RemoteRange> to, std::span<const uint8_t> bytes) {
        write_now(*target, to, bytes);
      });
  if (slot != 0 && !std::exchange(target->is_in_untaken, true)) untaken_.push_back(client);
  return slot;
}

void ProcessMemory::flush_unattached() {
  for (const engine::ClientId client : unattached_) {
    Client* target = find(client);
    if (target == nullptr) continue;
    target->received.spill([&](std::span<const engine::RemoteRange> to,
                               std::span<const uint8_t> bytes) { write_now(*target, to, bytes); });
  }
  unattached_.clear();
}

void ProcessMemory::share(engine::ClientId client, abi::Payload& payload,
                          const abi::DoorbellRing& ring) {
  Client* target = find(client);
  if (target == nullptr) return;
  target->received.share(payload.received, ring);
  target->sent = &payload.sent;
}

void ProcessMemory::withdraw_payload(engine::ClientId client) {
  Client* target = find(client);
  if (target == nullptr) return;
  target->received.withdraw(
      {}, [&](std::span<const engine::RemoteRange> to, std::span<const uint8_t> bytes) {
        write_now(*target, to, bytes);
      });
}

void ProcessMemory::write_untaken() {
  std::erase_if(untaken_, [this](engine::ClientId client) {
    Client* target = find(client);
    if (target == nullptr) return true;
    target->is_in_untaken = target->received.withdraw_untaken(
        [&](std::span<const engine::RemoteRange> to, std::span<const uint8_t> bytes) {
          write_now(*target, to, bytes);
        });
    return !target->is_in_untaken;
  });
}

ProcessMemory::Client* ProcessMemory::find(engine::ClientId client) {
  const auto found = clients_.find(client);
  return found != clients_.end() ? &found->second : nullptr;
}

}  // namespace rocemu::daemon
