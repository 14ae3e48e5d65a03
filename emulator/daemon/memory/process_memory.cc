#include "emulator/daemon/memory/process_memory.h"

#include <spdlog/spdlog.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "emulator/os/proc.h"

namespace rocemu::daemon {
namespace {

/// Returns whether some of the bytes may also be mapped at other addresses.
bool is_shared(std::span<const engine::RemoteRange> ranges) {
  return std::ranges::any_of(ranges, &engine::RemoteRange::is_shared);
}

const char* name_of(abi::MappingCall call) {
  switch (call) {
    case abi::MappingCall::kMunmap:
      return "munmap(2)";
    case abi::MappingCall::kMmap:
      return "mmap(2)";
    case abi::MappingCall::kMremap:
      return "mremap(2)";
    case abi::MappingCall::kMadvise:
      return "madvise(2)";
  }
  return "?";
}

/// Warns if a NIC would access other pages than rocemu does, because the memory was mapped anew
/// after its registration. Warns only once for each program.
template <class Client>
void check_mappings(Client& client, std::span<const engine::RemoteRange> ranges, bool writes) {
  if (!client.mappings.may_be_any()) [[likely]] {
    return;
  }
  const auto change = client.mappings.find(ranges);
  if (!change || std::exchange(client.process->was_warned, true)) return;
  spdlog::warn(
      "{} (pid {}): a message {} registered memory at {:#x} to {:#x}, whose pages {} "
      "has replaced since the registration. A real NIC would use the old pages, "
      "which it has pinned; rocemu uses the pages that are mapped now. Deregister "
      "memory before it is unmapped (ibv_dereg_mr(3))",
      proc::name_of(client.process->pid), client.process->pid, writes ? "writes to" : "reads from",
      change->begin, change->end, name_of(change->call));
}

}  // namespace

ProcessMemory::ProcessMemory() : returned_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

ProcessMemory::Way ProcessMemory::add(engine::ClientId client, pid_t pid, UniqueFd mem_file,
                                      bool prefer_mem_file) {
  const std::optional<FileId> mem_file_id = mem_file ? file_id(mem_file.get()) : std::nullopt;
  MemoryReach reach(pid, std::move(mem_file), prefer_mem_file);
  const Way way = reach.way();
  if (way == Way::kNone) return way;
  remove(client);
  std::shared_ptr<Process> process = process_of(pid, mem_file_id);
  process->clients.push_back(client);
  clients_.emplace(client, Client(std::move(reach), std::move(process)));
  return way;
}

/// Returns the process to which a new context belongs. Contexts belong to the same process if they
/// have the same PID or, in another PID namespace, the same /proc/PID/mem, which remains the same
/// file while one of them has it open.
std::shared_ptr<ProcessMemory::Process> ProcessMemory::process_of(
    pid_t pid, std::optional<FileId> mem_file) const {
  for (const auto& [id, client] : clients_) {
    const Process& process = *client.process;
    const bool is_same = pid > 0 ? process.pid == pid : mem_file && process.mem_file == mem_file;
    if (is_same) return client.process;
  }
  return std::make_shared<Process>(Process{.pid = std::max(pid, 0), .mem_file = mem_file});
}

void ProcessMemory::remove(engine::ClientId client) {
  const Client* found = find(client);
  if (found == nullptr) return;
  copies.remove(client);
  Process& process = *found->process;
  flush_queue(process);
  std::erase(process.clients, client);
  if (process.clients.empty()) std::erase(waiting_, &process);
  latest_ = {};
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
  copies.remove(client);
  target.copier = PatientCopier::start(target.reach, returned_.get(), target.process->allowance);
  return target.copier != nullptr ? 0 : ENOMEM;
}

engine::MemoryResult ProcessMemory::read(engine::ClientId client,
                                         std::span<const engine::RemoteRange> from,
                                         std::span<const std::span<uint8_t>> to) {
  Client* target = find(client);
  if (target == nullptr) return engine::MemoryResult::kGone;
  if (expects_messages_) check_mappings(*target, from, /*writes=*/false);
  flush_earlier_writes(*target, from);
  flush_shared();
  if (target->process->queue.overlaps(from)) flush_queue(*target->process);
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
  if (!is_there) return read(client, from, to);  // by the client's account
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
  if (expects_messages_) check_mappings(*target, to, /*writes=*/true);
  flush_earlier_writes(*target, to);
  if (is_shared(to)) flush_shared();
  flush_queue(*target->process);  // a program may poll the later of two writes
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
  if (expects_messages_) check_mappings(*target, to, /*writes=*/true);
  flush_earlier_writes(*target, to);
  enqueue(*target, to, from);
  return engine::MemoryResult::kDone;
}

engine::MemoryResult ProcessMemory::write_received(engine::ClientId client, engine::QpNumber qp,
                                                   bool is_first,
                                                   std::span<const engine::RemoteRange> to,
                                                   std::span<const std::span<const uint8_t>> from) {
  Client* target = find(client);
  if (target == nullptr) return engine::MemoryResult::kGone;
  if (target->copier != nullptr || is_shared(to)) return write_soon(client, to, from);
  if (expects_messages_) check_mappings(*target, to, /*writes=*/true);
  for (const engine::ClientId other : target->process->clients) {
    if (other != client) flush_received(*find(other), to);
  }
  const bool was_any = target->received.is_any_unattached();
  if (!target->received.add(qp, is_first, to, from)) return write_soon(client, to, from);
  if (!was_any) unattached_.push_back(client);
  return engine::MemoryResult::kDone;
}

void ProcessMemory::enqueue(Client& target, std::span<const engine::RemoteRange> to,
                            std::span<const std::span<const uint8_t>> from) {
  ++writes_;
  Process& process = *target.process;
  if (process.queue.is_full(to)) flush_queue(process);
  if (!std::exchange(process.is_in_waiting, true)) waiting_.push_back(&process);
  if (is_shared(to)) {
    flush_shared(&process);  // these came before
    if (!std::exchange(process.has_shared_in_queue, true)) ++shared_waiting_;
  }
  process.queue.add(to, from);
}

/// Carries out the writes in the process's queue.
void ProcessMemory::flush_queue(Process& process) {
  if (process.queue.empty()) return;
  process.queue.flush(find(process.clients.front())->reach, scratch_);
  if (std::exchange(process.has_shared_in_queue, false)) --shared_waiting_;
}

/// Carries out the queued writes of all processes whose queues have writes to shared memory, except
/// the process `except`.
void ProcessMemory::flush_shared(const Process* except) {
  if (shared_waiting_ == 0) [[likely]] {
    return;
  }
  for (Process* process : waiting_) {
    if (process->has_shared_in_queue && process != except) flush_queue(*process);
  }
}

void ProcessMemory::watch_mappings(engine::ClientId client, const abi::MappingChanges& changes) {
  if (Client* target = find(client)) target->mappings.share(changes);
}

void ProcessMemory::on_registration(engine::ClientId client, uint64_t address, uint64_t length) {
  const Client* target = find(client);
  if (target == nullptr || address + length < address) return;
  for (const engine::ClientId one : target->process->clients) {
    find(one)->mappings.forget(address, address + length);
  }
}

/// Writes to memory as if it were pinned.
void ProcessMemory::write_now(const Client& target, std::span<const engine::RemoteRange> to,
                              std::span<const uint8_t> bytes) {
  const std::array<std::span<const uint8_t>, 1> all{bytes};
  if (target.reach.write(to, all, scratch_) == engine::MemoryResult::kFault) {
    target.reach.write_pinned(to, all);
  }
}

/// Carries out earlier writes to these bytes by any context of the process. Must be called before
/// the bytes are read or overwritten.
void ProcessMemory::flush_earlier_writes(Client& target,
                                         std::span<const engine::RemoteRange> ranges) {
  if (target.process->clients.size() == 1) [[likely]] {
    return flush_received(target, ranges);
  }
  for (const engine::ClientId client : target.process->clients) {
    flush_received(*find(client), ranges);
  }
}

void ProcessMemory::flush_received(Client& client, std::span<const engine::RemoteRange> ranges) {
  if (!client.received.may_overlap(ranges)) [[likely]] {
    return;
  }
  flush_queue(*client.process);  // these came before
  const auto write = [&](std::span<const engine::RemoteRange> to, std::span<const uint8_t> bytes) {
    write_now(client, to, bytes);
  };
  client.received.withdraw(ranges, write);
  client.received.spill(write);
}

void ProcessMemory::flush() {
  for (Process* process : waiting_) {
    flush_queue(*process);
    process->is_in_waiting = false;
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
  if (target->reach.way() == Way::kProcessVm) {
    copies.add(client, payload.copies, ring, target->process->pid);
  }
}

bool ProcessMemory::begin_copy(const engine::DirectCopy& copy) {
  Client* from = find(copy.from);
  Client* to = find(copy.to);
  if (from == nullptr || to == nullptr) return false;
  check_mappings(*from, copy.source, /*writes=*/false);
  check_mappings(*to, copy.target, /*writes=*/true);
  flush_earlier_writes(*from, copy.source);
  flush_earlier_writes(*to, copy.target);
  flush_queue(*from->process);
  flush_queue(*to->process);
  return copies.begin(copy);
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
  if (latest_.second != nullptr && latest_.first == client) return latest_.second;
  const auto found = clients_.find(client);
  if (found == clients_.end()) return nullptr;
  latest_ = {client, &found->second};
  return &found->second;
}

}  // namespace rocemu::daemon
