// The engine's inside: all devices with their objects, the links between them, and what the
// protocol's parts (requester, responder, commands) share: completions, events, frames, timers.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "emulator/engine/cm/connection_manager.h"
#include "emulator/engine/completion_queue.h"
#include "emulator/engine/config.h"
#include "emulator/engine/counters.h"
#include "emulator/engine/events.h"
#include "emulator/engine/frame.h"
#include "emulator/engine/host_memory.h"
#include "emulator/engine/limits.h"
#include "emulator/engine/memory.h"
#include "emulator/engine/multicast.h"
#include "emulator/engine/queue_pair.h"
#include "emulator/engine/shared_receive_queue.h"
#include "emulator/engine/table.h"
#include "emulator/engine/timers.h"
#include "emulator/engine/xrc_domain.h"
#include "wire/packet.h"

namespace rocemu::engine {

struct ProtectionDomain {
  ProtectionDomain(PdId i, ClientId c) : id(i), client(c) {}
  PdId id;
  ClientId client;
  uint32_t users = 0;  // MRs, MWs, QPs, SRQs, AHs
};

/// Device memory: only its size is ours, the bytes are the client's.
struct DeviceMemory {
  DeviceMemory(DmId i, ClientId c, uint64_t bytes) : id(i), client(c), length(bytes) {}
  DmId id;
  ClientId client;
  uint64_t length;
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
  bool removed = false;
  uint64_t device_memory_used = 0;  // bytes
  Counters counters;

  bool port_is_up() const { return port_state == abi::PortState::kActive; }
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
  /// To all that have a reference to the QP.
  void raise(const QueuePair& qp, abi::EventType type);
  void violation(ClientId client, const char* reason);

  /// Sends `frame`, whose payload of that size is in place, on the QP's path.
  void send(QueuePair& qp, wire::Packet& packet, size_t payload_size, Frame frame);
  /// The same for a packet that says itself where it comes from and goes to. `inside` is the device
  /// of the fabric that it is for, if one is.
  void send(DeviceIndex from, std::optional<DeviceIndex> inside, const wire::Packet& packet,
            size_t payload_size, Frame frame);
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
  Table<XrcdId, XrcDomain> xrcds{1, kMaxXrcds};
  Table<SrqId, SharedReceiveQueue> srqs{1, kMaxSrqs};
  Table<QpNumber, QueuePair> qps{kFirstQpn, kMaxQps};
  Table<DmId, DeviceMemory> dms{1, kMaxDms};
  MemoryTable mrs;
  MulticastTable multicast;
  std::map<ClientId, DeviceIndex> clients;
  cm::ConnectionManager connections;

  void attach(const AttachClient& input);
  /// May one use what the other made? (AttachClient::shares_with)
  bool share_objects(ClientId a, ClientId b) const { return group_of(a) == group_of(b); }

  const std::vector<Device>& devices() const { return devices_; }
  const FabricConfig& config() const { return config_; }
  std::optional<DeviceIndex> device_with_address(const wire::IpAddress& address) const;
  /// The owner's object, or nullptr if it does not exist or is someone else's.
  QueuePair* qp_of(ClientId client, QpNumber number);
  CompletionQueue* cq_of(ClientId client, CqId id);
  SharedReceiveQueue* srq_of(ClientId client, SrqId id);

  void set_port(DeviceIndex device, bool up);
  void remove_device(DeviceIndex device);
  /// Whose every command fails.
  bool has_lost_its_device(ClientId client) const;
  /// The client needs the QP no more: it goes, unless there are other references. Of several that
  /// the client has, the one with that user handle is given back.
  void release_qp(QueuePair& qp, ClientId client, uint64_t user_handle);
  void destroy_mr(MemoryRegion& mr);
  void destroy_mw(MemoryWindow& mw);
  void free_dm(DeviceMemory& dm);
  void destroy_srq(SharedReceiveQueue& srq);
  void detach(ClientId client);

  /// A frame from outside the fabric. See packet_flow.cc.
  void receive(DeviceIndex device, std::span<const uint8_t> bytes);

 private:
  void destroy_qp(QueuePair& qp);
  /// All that the client has; what others still need of it goes to them.
  void release_objects(ClientId client);
  struct InFlight {
    DeviceIndex to;
    Frame frame;
  };

  ClientId group_of(ClientId client) const;
  std::optional<ClientId> heir_of(ClientId client) const;
  void notify(const CompletionQueue& cq);
  /// The first of the events that wait for more completions; forgets what waits no more.
  std::optional<Instant> next_moderated_event();
  void overrun(CompletionQueue& cq);
  void fail_users_of_overrun_cqs();
  void expire_timers();
  /// What a device does with a frame that reached it. See packet_flow.cc.
  void arrive(DeviceIndex device, std::span<const uint8_t> bytes);
  void admit(QueuePair& qp, DeviceIndex device, const wire::Packet& packet,
             const wire::OpcodeInfo& info, std::span<const uint8_t> frame);

  FabricConfig config_;
  std::map<ClientId, ClientId> groups_;  // of those that share: the client all of it began with
  HostMemory& host_memory_;
  FramePool frames_;
  std::vector<Device> devices_;
  TimerQueue timers_;
  std::deque<InFlight> link_;      // frames between devices of the fabric, in order
  std::deque<QpNumber> schedule_;  // QPs that have something to send, in turn
  std::vector<CqId> overrun_cqs_;  // whose QPs have yet to be failed
  std::set<std::pair<Instant, CqId>> moderated_events_;  // by CompletionQueue::event_deadline
  Instant now_{};
  Outputs* outputs_ = nullptr;
};

}  // namespace rocemu::engine
