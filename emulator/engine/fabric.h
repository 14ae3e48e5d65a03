// The engine's inside: all devices with their objects, the links between them, and what the
// protocol's parts (requester, responder, commands) share: completions, events, frames, timers.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "emulator/engine/completion_queue.h"
#include "emulator/engine/config.h"
#include "emulator/engine/counters.h"
#include "emulator/engine/events.h"
#include "emulator/engine/frame.h"
#include "emulator/engine/host_memory.h"
#include "emulator/engine/limits.h"
#include "emulator/engine/memory.h"
#include "emulator/engine/queue_pair.h"
#include "emulator/engine/table.h"
#include "emulator/engine/timers.h"
#include "wire/packet.h"

namespace rocemu::engine {

struct ProtectionDomain {
  ProtectionDomain(PdId i, ClientId c) : id(i), client(c) {}
  PdId id;
  ClientId client;
  uint32_t users = 0;  // MRs, QPs, AHs
};

struct AddressHandle {
  AddressHandle(AhId i, ClientId c, PdId p) : id(i), client(c), pd(p) {}
  AhId id;
  ClientId client;
  PdId pd;
  abi::AhAttr attr{};
};

struct Device {
  explicit Device(DeviceConfig c) : config(std::move(c)) {}

  DeviceConfig config;
  abi::PortState port_state = abi::PortState::kActive;
  Counters counters;
};

class Fabric {
 public:
  Fabric(FabricConfig config, HostMemory& memory);

  // ---- The step in progress ----
  Instant now() const { return now_; }
  void begin_step(Instant now, Outputs& outputs);
  /// Works until nothing is left to do now or the step has moved its share of frames.
  void run();
  std::optional<Instant> next_deadline();

  // ---- What the protocol's parts ask for ----
  HostMemory& host_memory() { return host_memory_; }
  Device& device(DeviceIndex index) { return devices_[index.value]; }
  Device& device_of(const QueuePair& qp) { return devices_[qp.device.value]; }
  FramePool& frames() { return frames_; }

  /// Adds a completion to the CQ, or overruns it. `solicits`: see CompletionQueue::add.
  void complete(CqId cq, const abi::Cqe& cqe, bool solicits);
  void raise(ClientId client, abi::EventType type, uint64_t element);
  void violation(ClientId client, const char* reason);

  /// Sends `frame`, whose payload of that size is in place, from the QP to its peer.
  void send(QueuePair& qp, wire::Packet& packet, size_t payload_size, Frame frame);
  /// Lets the QP's requester transmit when its turn comes.
  void schedule(QueuePair& qp);
  void set_timer(QueuePair& qp, TimerKind kind, Instant at) {
    timers_.set(qp.number, qp.timers, kind, at);
  }
  /// To the error state: what is posted is flushed (IBTA vol 1, 10.3.1.5).
  void enter_error(QueuePair& qp);

  // ---- Objects ----
  Table<PdId, ProtectionDomain> pds{1, kMaxPds};
  Table<CqId, CompletionQueue> cqs{1, kMaxCqs};
  Table<AhId, AddressHandle> ahs{1, kMaxAhs};
  Table<QpNumber, QueuePair> qps{kFirstQpn, kMaxQps};
  MemoryTable mrs;
  std::map<ClientId, DeviceIndex> clients;

  const std::vector<Device>& devices() const { return devices_; }
  const FabricConfig& config() const { return config_; }
  std::optional<DeviceIndex> device_with_address(const wire::IpAddress& address) const;
  /// The owner's object, or nullptr if it does not exist or is someone else's.
  QueuePair* qp_of(ClientId client, QpNumber number);
  CompletionQueue* cq_of(ClientId client, CqId id);

  void destroy_qp(QueuePair& qp);
  void detach(ClientId client);

  /// A frame from outside the fabric. See packet_flow.cc.
  void receive(DeviceIndex device, std::span<const uint8_t> bytes);

 private:
  struct InFlight {
    DeviceIndex to;
    Frame frame;
  };

  void overrun(CompletionQueue& cq);
  void fail_users_of_overrun_cqs();
  void expire_timers();
  /// What a device does with a frame that reached it. See packet_flow.cc.
  void arrive(DeviceIndex device, std::span<const uint8_t> bytes);

  FabricConfig config_;
  HostMemory& host_memory_;
  FramePool frames_;
  std::vector<Device> devices_;
  TimerQueue timers_;
  std::deque<InFlight> link_;      // frames between devices of the fabric, in order
  std::deque<QpNumber> schedule_;  // QPs that have something to send, in turn
  std::vector<CqId> overrun_cqs_;  // whose QPs have yet to be failed
  Instant now_{};
  Outputs* outputs_ = nullptr;
};

}  // namespace rocemu::engine
