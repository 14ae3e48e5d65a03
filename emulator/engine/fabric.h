// The engine's inside: all devices with their objects, the links between them, and what the
// protocol's parts (requester, responder, commands) share: completions, events, frames, timers.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "emulator/engine/base/counters.h"
#include "emulator/engine/base/frame.h"
#include "emulator/engine/base/host_memory.h"
#include "emulator/engine/base/limits.h"
#include "emulator/engine/base/owned_table.h"
#include "emulator/engine/base/table.h"
#include "emulator/engine/base/timers.h"
#include "emulator/engine/cm/connection_manager.h"
#include "emulator/engine/config.h"
#include "emulator/engine/events.h"
#include "emulator/engine/faults/fault_injector.h"
#include "emulator/engine/link/link.h"
#include "emulator/engine/link/packet_run.h"
#include "emulator/engine/objects/completion_delivery.h"
#include "emulator/engine/objects/completion_queue.h"
#include "emulator/engine/objects/memory_table.h"
#include "emulator/engine/objects/multicast_groups.h"
#include "emulator/engine/objects/queue_pair.h"
#include "emulator/engine/objects/shared_receive_queue.h"
#include "emulator/engine/objects/xrc_domain.h"
#include "emulator/engine/step.h"
#include "wire/packet.h"

namespace rocemu::engine {

struct ProtectionDomain {
  ProtectionDomain(PdId i, ClientId c) : id(i), client(c) {}
  PdId id;
  ClientId client;
  uint32_t users = 0;  // MRs, MWs, QPs, SRQs, AHs
  Links<ProtectionDomain> of_client;
};

/// Device memory: only its size is ours, the bytes are the client's.
struct DeviceMemory {
  DeviceMemory(DmId i, ClientId c, uint64_t bytes) : id(i), client(c), length(bytes) {}
  DmId id;
  ClientId client;
  uint64_t length;
  Links<DeviceMemory> of_client;
};

struct AddressHandle {
  AddressHandle(AhId i, ClientId c, PdId p) : id(i), client(c), pd(p) {}
  AhId id;
  ClientId client;
  PdId pd;
  abi::AhAttr attr{};
  Links<AddressHandle> of_client;
};

struct Device {
  explicit Device(DeviceConfig c) : config(std::move(c)) {}

  DeviceConfig config;
  abi::PortState port_state = abi::PortState::kActive;
  bool removed = false;
  uint64_t device_memory_used = 0;  // bytes
  uint32_t qps_created = 0;         // ever
  Counters counters;

  bool port_is_up() const { return port_state == abi::PortState::kActive; }
};

class Fabric {
  FramePool frames_;  // before all that may keep a frame

 public:
  Fabric(FabricConfig config, HostMemory& memory);

  // ---- The step in progress ----
  Instant now() const { return step_.now(); }
  void begin_step(Instant now, Outputs& outputs);
  /// Lets run() expire the timers of QPs and connections that are due, as soon as what was under
  /// way before has arrived.
  void begin_expiry();
  /// Works until nothing is left to do now or the step has moved its share of frames.
  void run();
  std::optional<Instant> next_deadline();
  /// Nothing is under way and nobody waits for an answer.
  bool is_idle() const;

  // ---- What the protocol's parts ask for ----
  HostMemory& host_memory() { return host_memory_; }
  Device& device(DeviceIndex index) { return devices_[index.value]; }
  Device& device_of(const QueuePair& qp) { return devices_[qp.device.value]; }
  /// Its packets leave what this engine steps. A network loses some and delays others; another
  /// part's thread may have no processor for long.
  bool is_outside(const QueuePair& qp) const {
    return qp.path.inside ? config_.shard.is_without(*qp.path.inside)
                          : devices_[qp.device.value].config.outside;
  }
  FramePool& frames() { return frames_; }

  /// Adds a QP's completion to the CQ, or overruns it. `solicits`: see CompletionQueue::add. One
  /// that is not `wanted` (of an unsignalled success) only exists if a rule makes a failure of it.
  /// False if a rule did: the QP has to fail.
  bool complete(const QueuePair& qp, CqId cq, const abi::Cqe& cqe, bool solicits,
                bool wanted = true) {
    if (faults.watches(faults::Where::kCompletion)) [[unlikely]] {
      return faults.completions.apply(qp, cq, cqe, solicits, wanted);
    }
    if (wanted) deliver(cq, cqe, solicits);
    return true;
  }
  void raise(ClientId client, abi::EventType type, uint64_t element,
             const QueuePair* qp = nullptr) {
    if (faults.watches(faults::Where::kEvent)) [[unlikely]] {
      return faults.events.apply(client, type, element, qp);
    }
    deliver_event(client, type, element);
  }
  /// To all that have a reference to the QP.
  void raise(const QueuePair& qp, abi::EventType type);
  void violation(ClientId client, const char* reason);
  CompletionDelivery& completions() { return completions_; }

  /// Sends `frame`, whose payload of that size is in place, on the QP's path.
  void send(QueuePair& qp, wire::Packet& packet, size_t payload_size, Frame frame);
  /// The same for a packet that says itself where it comes from and goes to. `inside` is the device
  /// of the fabric that it is for, if one is.
  void send(DeviceIndex from, std::optional<DeviceIndex> inside, const wire::Packet& packet,
            size_t payload_size, Frame frame);
  /// Lets the QP's requester transmit when its turn comes.
  void schedule(QueuePair& qp);
  /// Schedules it when memory that is MemoryResult::kNotYet may be there.
  void wait_for_memory(QueuePair& qp);
  void go_on_with_memory();
  void set_timer(QueuePair& qp, TimerKind kind, Instant at) {
    timers_.set(qp.number, qp.timers, kind, at);
  }
  /// An acknowledgement is to wait, since behind the packet at hand comes another one now.
  bool delays_acknowledgement() const {
    return config_.coalesces_acknowledgements && link_.has_arrived(now()) && !link_.paused() &&
           !faults.watches_frames();
  }
  /// The packet at hand, with those of its message that have arrived behind it.
  PacketRun& run_at_hand() { return run_; }
  /// To the error state: what is posted is flushed (IBTA vol 1, 10.3.1.5).
  void enter_error(QueuePair& qp);

  // ---- Objects ----
  OwnedTable<PdId, ProtectionDomain> pds{1, kNumbers, kMaxPds};
  OwnedTable<CqId, CompletionQueue> cqs{1, kNumbers, kMaxCqs};
  OwnedTable<AhId, AddressHandle> ahs{1, kNumbers, kMaxAhs};
  Table<XrcdId, XrcDomain> xrcds{1, kMaxXrcds};
  OwnedTable<SrqId, SharedReceiveQueue> srqs{1, kNumbers, kMaxSrqs};
  OwnedTable<QpNumber, QueuePair> qps;
  OwnedTable<DmId, DeviceMemory> dms{1, kNumbers, kMaxDms};
  MemoryTable mrs;
  MulticastTable multicast;
  std::map<ClientId, DeviceIndex> clients;
  cm::ConnectionManager connections;
  faults::FaultInjector faults;

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

  // ---- What faults::FaultInjector does it with ----
  template <class Kind>
  void emit(Kind output) {
    step_.emit(std::move(output));
  }
  /// To the CQ, whatever rules there are.
  void deliver(CqId cq, const abi::Cqe& cqe, bool solicits);
  void deliver_event(ClientId client, abi::EventType type, uint64_t element);
  void overrun(CompletionQueue& cq);
  /// On its way, whatever rules there are.
  void launch(faults::Departure departure);
  void trace(const faults::Departure& departure);

  Link& link() { return link_; }
  /// The client needs the QP no more: it goes, unless there are other references. Of several that
  /// the client has, the one with that user handle is given back.
  void release_qp(QueuePair& qp, ClientId client, uint64_t user_handle);
  void destroy_mr(MemoryRegion& mr);
  void destroy_mw(MemoryWindow& mw);
  void free_dm(DeviceMemory& dm);
  void destroy_srq(SharedReceiveQueue& srq);
  void detach(ClientId client);
  /// Goes on with what is left of clients that are gone, for a while.
  void release_leaving();
  bool is_releasing() const { return !leaving_.empty(); }

  /// A frame from outside the fabric. See admission.cc.
  void receive(const ReceiveFrame& input);
  /// Frames of other parts of the fabric.
  void receive(const ForwardedFrames& input);
  /// The device's first QP has joined the group, or the last one left it.
  void group_changed(DeviceIndex device, const wire::IpAddress& group, bool member);

 private:
  void destroy_qp(QueuePair& qp);
  // ---- leaving_clients.cc ----
  /// A client that is gone, or whose device is, and has had objects.
  struct LeavingClient {
    ClientId client;
    bool detached;                // else it stays, but without objects
    bool has_left_xrcds = false;  // and gave back what it had of them
  };
  /// From now on the client's QPs neither send nor receive, as if they were gone.
  void silence(ClientId client);
  /// All that the client has, but no more than `budget` objects; what others still need of it goes
  /// to them. True if that was all.
  bool release_objects(LeavingClient& leaving, uint32_t& budget);
  void drop_further_references(QueuePair& qp, ClientId client);
  void leave_xrcds(ClientId client);
  void finish(const LeavingClient& leaving);
  ClientId group_of(ClientId client) const;
  std::optional<ClientId> heir_of(ClientId client) const;
  void fail_users_of_overrun_cqs();
  std::optional<TimerQueue::Entry> next_timer();
  /// Of a QP or of a connection.
  Instant next_timeout();
  bool may_expire();
  void expire_timers();
  bool may_produce_frames() const;
  /// What a device does with a frame that reached it. See admission.cc.
  void arrive(DeviceIndex device, std::span<const uint8_t> bytes, bool from_outside);
  /// The same for a frame of this fabric that carries along what it says.
  void arrive_parsed(DeviceIndex device, const Frame& frame);
  /// The same, if the frame is as it was when it was sent.
  void arrive_if_intact(DeviceIndex device, std::span<const uint8_t> bytes, bool from_outside);
  void drop_damaged(DeviceIndex device, std::span<const uint8_t> bytes);
  /// False if the port is down: then the frame is lost.
  bool count_arrival(DeviceIndex device, size_t size);
  /// To the QPs that a frame is for.
  /// `frame` may be empty but for a datagram.
  void dispatch(DeviceIndex device, const wire::Packet& packet, std::span<const uint8_t> frame);
  void admit(QueuePair& qp, DeviceIndex device, const wire::Packet& packet,
             const wire::OpcodeInfo& info, std::span<const uint8_t> frame);

  // ---- Frames under way ----
  void send(DeviceIndex from, std::optional<DeviceIndex> inside, const wire::Packet& packet,
            size_t payload_size, Frame frame, const QueuePair* qp);

  // ---- shard_forwarding.cc ----
  /// To another part of the fabric; false if it is for this one.
  bool forward(faults::Departure& departure);
  bool concerns_nobody(const ForwardedFrame& forwarded) const;

  FabricConfig config_;
  std::map<ClientId, ClientId> groups_;  // of those that share: the client all of it began with
  std::deque<LeavingClient> leaving_;
  HostMemory& host_memory_;
  std::vector<Device> devices_;
  TimerQueue timers_;
  Link link_;
  PacketRun run_;
  std::deque<QpNumber> schedule_;  // QPs that have something to send, in turn
  std::vector<QpNumber> waiting_for_memory_;
  uint64_t turns_scheduled_ = 0, turns_taken_ = 0;
  bool expiring_ = false;  // timers are due
  /// The last of the turns that were scheduled when that was noticed.
  std::optional<uint64_t> last_turn_before_expiry_;
  std::vector<CqId> overrun_cqs_;  // whose QPs have yet to be failed
  Step step_;
  CompletionDelivery completions_{cqs, host_memory_, step_};
};

}  // namespace rocemu::engine
