// The memory of clients that the engine can access: application memory, and the consumer indices of
// completion queues, which are in shared memory.
#pragma once

#include "emulator/daemon/client/session_table.h"
#include "emulator/daemon/memory/process_memory.h"
#include "emulator/engine/base/host_memory.h"

namespace rocemu::daemon {

class ClientMemory : public engine::HostMemory {
 public:
  ClientMemory(ProcessMemory& processes, SessionTable& sessions)
      : processes_(processes), sessions_(sessions) {}

  engine::MemoryResult read(engine::ClientId client, std::span<const engine::RemoteRange> from,
                            std::span<const std::span<uint8_t>> to) override {
    return processes_.read(client, from, to);
  }
  engine::MemoryResult read_posted(engine::ClientId client, uint32_t slot, uint64_t offset,
                                   std::span<const engine::RemoteRange> from,
                                   std::span<const std::span<uint8_t>> to) override {
    return processes_.read_posted(client, slot, offset, from, to);
  }
  engine::MemoryResult write(engine::ClientId client, std::span<const engine::RemoteRange> to,
                             std::span<const std::span<const uint8_t>> from) override {
    return processes_.write(client, to, from);
  }
  engine::MemoryResult write_soon(engine::ClientId client, std::span<const engine::RemoteRange> to,
                                  std::span<const std::span<const uint8_t>> from) override {
    return processes_.write_soon(client, to, from);
  }
  engine::MemoryResult write_received(engine::ClientId client, engine::QpNumber qp, bool is_first,
                                      std::span<const engine::RemoteRange> to,
                                      std::span<const std::span<const uint8_t>> from) override {
    return processes_.write_received(client, qp, is_first, to, from);
  }
  bool may_copy(engine::ClientId maker) override { return processes_.copies.may_begin(maker); }
  bool begin_copy(const engine::DirectCopy& copy) override { return processes_.begin_copy(copy); }
  engine::CopyProgress copy_progress(engine::ClientId maker, const engine::CopyKey& key) override {
    return processes_.copies.progress(maker, key);
  }
  void forget_copy(engine::ClientId maker, const engine::CopyKey& key) override {
    processes_.copies.forget(maker, key);
  }
  void forget_copies(engine::ClientId maker, engine::QpNumber qp) override {
    processes_.copies.forget(maker, qp);
  }
  void end_copies() override { processes_.copies.end(); }
  /// See ProcessMemory.
  uint8_t attach_payload(engine::ClientId client, const abi::Cqe& cqe, engine::CqId cq,
                         uint32_t index) {
    return processes_.attach_payload(client, cqe, cq, index);
  }
  void flush_unattached() { processes_.flush_unattached(); }
  void flush() { processes_.flush(); }
  /// Sets whether messages may be read before they are sent: from slots, or by direct copies.
  void read_early(bool may) {
    processes_.use_send_slots(may);
    processes_.copies.let_begin(may);
  }
  uint32_t completions_taken(engine::ClientId client, engine::CqId cq) override {
    CompletionQueue* queue = sessions_.find_cq(client, cq);
    return queue != nullptr ? queue->consumed() : 0;
  }

 private:
  ProcessMemory& processes_;
  SessionTable& sessions_;
};

}  // namespace rocemu::daemon
