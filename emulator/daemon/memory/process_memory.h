// Application memory as the engine reaches it: by system calls (memory_reach.h). Short writes wait
// for one another (write_queue.h). Of a client that may have to provide its pages by itself another
// thread makes the calls (patient_copier.h).
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulator/daemon/memory/memory_reach.h"
#include "emulator/daemon/memory/patient_copier.h"
#include "emulator/daemon/memory/write_queue.h"
#include "emulator/engine/base/host_memory.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class ProcessMemory {
 public:
  using Way = MemoryReach::Way;

  ProcessMemory();

  /// See MemoryReach; with kNone there is no way, and the client is not added.
  Way add(engine::ClientId client, pid_t pid, UniqueFd mem_file, bool prefer_mem_file = false);
  void remove(engine::ClientId client);

  /// From now on its memory may be MemoryResult::kNotYet. 0 or an errno value.
  int expect_waits(engine::ClientId client);
  /// An eventfd, readable when memory may be there that was not yet; -1 if the system has none.
  int returned_fd() const { return returned_.get(); }

  engine::MemoryResult read(engine::ClientId client, std::span<const engine::RemoteRange> from,
                            std::span<const std::span<uint8_t>> to);
  engine::MemoryResult write(engine::ClientId client, std::span<const engine::RemoteRange> to,
                             std::span<const std::span<const uint8_t>> from);
  /// See HostMemory; what waits is written by flush() at the latest.
  engine::MemoryResult write_soon(engine::ClientId client, std::span<const engine::RemoteRange> to,
                                  std::span<const std::span<const uint8_t>> from);
  /// Makes the writes that wait.
  void flush();

 private:
  struct Client {
    explicit Client(MemoryReach r) : reach(std::move(r)) {}

    MemoryReach reach;
    WriteQueue queue{};
    std::unique_ptr<PatientCopier> copier{};  // if it may have to be waited for
  };

  Client* find(engine::ClientId client);

  std::unordered_map<engine::ClientId, Client> clients_;
  std::vector<engine::ClientId> waiting_;  // whose queues are not empty
  MemoryReach::Scratch scratch_;
  UniqueFd returned_;
};

}  // namespace rocemu::daemon
