// The engine's access to application memory, by system calls (memory_reach.h). Short writes are
// collected (write_queue.h), and short messages are given to the program with their completions
// (received_payload.h). If a client may have to provide its pages first, another thread makes the
// calls (patient_copier.h).
//
// A queued write is carried out before the same bytes are read or overwritten, even at another
// address. Each context of a process is a client, and all of them share its address space. Memory
// that is mapped more than once (RemoteRange::is_shared) has several addresses, in several
// processes.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/daemon/base/unix_socket.h"
#include "emulator/daemon/memory/direct_copies.h"
#include "emulator/daemon/memory/mapping_changes.h"
#include "emulator/daemon/memory/memory_reach.h"
#include "emulator/daemon/memory/patient_copier.h"
#include "emulator/daemon/memory/received_payload.h"
#include "emulator/daemon/memory/write_queue.h"
#include "emulator/engine/base/host_memory.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class ProcessMemory {
 public:
  using Way = MemoryReach::Way;

  ProcessMemory();

  /// Adds a client, and returns the method of access to its memory (see MemoryReach). If that is
  /// kNone, its memory cannot be accessed, and the client is not added.
  Way add(engine::ClientId client, pid_t pid, UniqueFd mem_file, bool prefer_mem_file = false);
  void remove(engine::ClientId client);

  /// Notes that accesses to the client's memory may return MemoryResult::kNotYet from now on.
  /// Returns 0 or an errno value.
  int expect_waits(engine::ClientId client);
  /// Returns whether an access to the memory of any client has not finished.
  bool waits() const;
  /// Returns an eventfd that becomes readable when memory may have been provided; -1 if the system
  /// has none.
  int returned_fd() const { return returned_.get(); }

  engine::MemoryResult read(engine::ClientId client, std::span<const engine::RemoteRange> from,
                            std::span<const std::span<uint8_t>> to);
  /// Implements HostMemory::read_posted().
  engine::MemoryResult read_posted(engine::ClientId client, uint32_t slot, uint64_t offset,
                                   std::span<const engine::RemoteRange> from,
                                   std::span<const std::span<uint8_t>> to);
  engine::MemoryResult write(engine::ClientId client, std::span<const engine::RemoteRange> to,
                             std::span<const std::span<const uint8_t>> from);
  /// Implements HostMemory::write_soon(). Queued writes are carried out by flush() at the latest.
  engine::MemoryResult write_soon(engine::ClientId client, std::span<const engine::RemoteRange> to,
                                  std::span<const std::span<const uint8_t>> from);
  /// Implements HostMemory::write_received(), with ReceivedPayload.
  engine::MemoryResult write_received(engine::ClientId client, engine::QpNumber qp, bool is_first,
                                      std::span<const engine::RemoteRange> to,
                                      std::span<const std::span<const uint8_t>> from);
  /// Returns the number of writes so far. Messages that programs get with their completions are not
  /// counted.
  uint64_t writes() const { return writes_; }
  /// Carries out all queued writes. Messages that wait for their completion are not among them.
  void flush();
  /// Returns the value of Cqe::payload for the completion that is being added to the CQ, as number
  /// `index`.
  uint8_t attach_payload(engine::ClientId client, const abi::Cqe& cqe, engine::CqId cq,
                         uint32_t index);
  /// Writes the messages that got no completion in this step. Must be called after all completions
  /// of the step have been added.
  void flush_unattached();

  /// Implements HostMemory::begin_copy().
  bool begin_copy(const engine::DirectCopy& copy);
  /// The copies that programs make
  DirectCopies copies;

  /// Sets the shared memory in which the client reports changes of its mappings.
  void watch_mappings(engine::ClientId client, const abi::MappingChanges& changes);
  /// Notes that the client is about to register these bytes.
  void on_registration(engine::ClientId client, uint64_t address, uint64_t length);
  /// Sets whether accesses to memory are for messages. They are not while a request of a client is
  /// executed: then the engine only probes the memory.
  void expect_messages(bool expects) { expects_messages_ = expects; }

  /// Sets the memory for payload that the client shares with the daemon.
  void share(engine::ClientId client, abi::Payload& payload, const abi::DoorbellRing& ring);
  /// Sets whether read_posted() reads messages from the slots into which the provider copied them,
  /// or from the program's buffers. In the latter case, a program that modifies a message before
  /// its completion sees the effect, as with a NIC.
  void use_send_slots(bool use) { uses_send_slots_ = use; }
  /// Writes to memory the payload of completions that the client has not polled. Must be called
  /// when the client is about to deregister the memory, or to lose the completions.
  void withdraw_payload(engine::ClientId client);
  /// Writes to memory the payload that was already in a slot at the previous call and has not been
  /// taken since, because the program may read the memory without polling the CQ.
  void write_untaken();
  /// Returns whether write_untaken() might have payload to write.
  bool is_any_untaken() const { return !untaken_.empty(); }

 private:
  /// An address space. Each context that the process opens is a client.
  struct Process {
    pid_t pid;                         // 0: in another PID namespace
    bool was_warned = false;           // that it uses remapped memory
    std::optional<FileId> mem_file{};  // the file that it sent
    WriteQueue queue{};
    bool has_shared_in_queue = false;
    bool is_in_waiting = false;
    std::vector<engine::ClientId> clients{};
    /// The budget for waiting for the process's memory, which all its contexts share.
    std::shared_ptr<WaitAllowance> allowance = std::make_shared<WaitAllowance>();
  };
  struct Client {
    Client(MemoryReach r, std::shared_ptr<Process> p)
        : reach(std::move(r)), process(std::move(p)) {}

    MemoryReach reach;
    std::shared_ptr<Process> process;
    MappingChanges mappings{};
    ReceivedPayload received{};
    bool is_in_untaken = false;
    const abi::SendSlots* sent = nullptr;     // shared with the client
    std::unique_ptr<PatientCopier> copier{};  // if the memory may have to be waited for
  };

  Client* find(engine::ClientId client);
  std::shared_ptr<Process> process_of(pid_t pid, std::optional<FileId> mem_file) const;
  void enqueue(Client& target, std::span<const engine::RemoteRange> to,
               std::span<const std::span<const uint8_t>> from);
  void flush_queue(Process& process);
  void flush_shared(const Process* except = nullptr);
  void write_now(const Client& target, std::span<const engine::RemoteRange> to,
                 std::span<const uint8_t> bytes);
  void flush_earlier_writes(Client& target, std::span<const engine::RemoteRange> ranges);
  void flush_received(Client& client, std::span<const engine::RemoteRange> ranges);

  std::unordered_map<engine::ClientId, Client> clients_;
  std::pair<engine::ClientId, Client*> latest_{};  // that find() found; null if it was removed
  std::vector<Process*> waiting_;                  // whose queues may not be empty
  size_t shared_waiting_ = 0;                 // number of those with shared memory in their queue
  std::vector<engine::ClientId> unattached_;  // that may have messages without a completion
  std::vector<engine::ClientId> untaken_;     // that may have payload beside completions
  uint64_t writes_ = 0;
  bool uses_send_slots_ = true;
  bool expects_messages_ = true;
  MemoryReach::Scratch scratch_;
  UniqueFd returned_;
};

}  // namespace rocemu::daemon
