// One connection of a client to a device, which is one ibv_context. It implements the control
// protocol of abi/control.h, and owns the client's resources in the daemon: its queues, its event
// sockets, and the access to its memory. It never waits for its client, and a mistake of the client
// ends only this session.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/abi/control.h"
#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/base/engine_port.h"
#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/base/profile_messages.h"
#include "emulator/daemon/base/unix_socket.h"
#include "emulator/daemon/client/client_events.h"
#include "emulator/daemon/client/client_objects.h"
#include "emulator/daemon/client/client_queues.h"
#include "emulator/daemon/client/client_signals.h"
#include "emulator/daemon/client/hello.h"
#include "emulator/daemon/client/request_socket.h"
#include "emulator/daemon/client/ring_pump.h"
#include "emulator/daemon/client/self_connections.h"
#include "emulator/daemon/memory/process_memory.h"
#include "emulator/os/unique_fd.h"

namespace rocemu::daemon {

class ClientSession;

/// The owner of the sessions, which they notify. No function of this interface destroys a session
/// immediately.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  virtual void wake(ClientSession& session) = 0;
  virtual void ended(ClientSession& session) = 0;
  /// Notes that an object was destroyed, so that its memory is released later.
  virtual void destroyed() {}
  /// Notes that the session has received its hello.
  virtual void attached(ClientSession&) {}
  /// Returns the attached session whose client's end of the connection is this file; null if there
  /// is none.
  virtual ClientSession* find_by_client_end(const FileId& client_end) = 0;
  /// Returns the number of the current round of a virtual clock, which new clients need.
  virtual uint32_t round() const { return 0; }
  /// Returns the operations before which clients must send a request, because a rule may make them
  /// fail (abi::DoorbellRing::asked_for).
  virtual uint32_t asked_for() const { return 0; }
  /// Returns the number of threads that wait by yielding for each processor
  /// (abi::DoorbellRing::pollers_per_processor).
  virtual uint32_t pollers_per_processor() const { return 0; }
};

class ClientSession {
 public:
  /// The number of doorbells and WQEs of one client that are handled before those of the next
  /// client.
  static constexpr uint32_t kPumpBudget = 256;
  /// The number of posted receives of one client that are handled in a round. It is higher than
  /// kPumpBudget because receives cost little and are handled before the sends of other clients. A
  /// round seldom has more receives. If it does, a message may arrive before its receive is posted,
  /// which causes an RNR NAK.
  static constexpr uint32_t kReceiveBudget = 1 << 14;
  /// The number of doorbells and WQEs of one client, including receives, that are handled before
  /// those of the next client on a virtual clock.
  static constexpr uint32_t kOrderedBudget = 1 << 14;

  struct Services {
    EnginePort& engine;
    EventLoop& loop;
    ProcessMemory& memory;
    SessionOwner& owner;
    const Clock& clock;
    /// If true, the daemon reads and writes messages in memory at once
    /// (abi::DoorbellRing::has_exact_memory).
    bool has_exact_memory = false;
    bool fills_undefined = false;  // `--adversarial=undefined`
  };

  ClientSession(const Services& services, engine::ClientId id, engine::DeviceIndex device,
                UniqueFd socket, PeerCredentials peer);
  /// Closes the arena first, so that the contents of the queues do not change: the program still
  /// maps them.
  ~ClientSession() { queues_.arena.close(); }
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  /// Notes the current number of doorbells, for this round. Returns whether there are unhandled
  /// ones.
  ///
  /// This is the first of the three parts of a round. Each part is done for all sessions before the
  /// next part begins, so that earlier posts take effect earlier: a receive that one context posted
  /// exists when another context's later send arrives, and a CQ that it armed is armed when that
  /// send completes.
  bool note_doorbells();
  /// Handles all receives and arms that have been posted so far. This is the second part of a
  /// round.
  void take_receives();
  /// Handles the noted doorbells, and then the request that waits for them. This is the third part
  /// of a round. Returns whether there was anything to handle.
  bool pump();
  /// Handles the noted doorbells like pump(), but in an order that does not depend on timing
  /// (RingPump::run_by_object).
  bool pump_by_object();

  const ClientSignals& signals() const { return signals_; }

  void deliver(const engine::CompletionEvent& event);
  void deliver(const engine::AsyncEvent& event);
  void deliver(const engine::DeviceLost&) { events_.close_channels(); }

  /// Ends the session. Only the first reason is kept. An empty reason means an orderly end.
  void end(std::string reason);
  bool has_ended() const { return queues_.ended; }
  const std::string& end_reason() const { return end_reason_; }

  engine::ClientId id() const { return queues_.id; }
  engine::DeviceIndex device() const { return device_; }
  bool is_attached() const { return attached_; }  // received its hello: the engine knows the client
  /// Returns the identity of the client's end of the connection; nothing before the hello.
  const std::optional<FileId>& client_end() const { return client_end_; }
  const PeerCredentials& peer() const { return peer_; }
  const ClientEvents& events() const { return events_; }
  const std::string& command_name() const { return command_name_; }
  ClientQueues& queues() { return queues_; }
  const ClientQueues& queues() const { return queues_; }
  /// Moves the client's queues to the caller, which destroys them in parts. The session must have
  /// ended.
  ClientQueues take_queues() { return std::move(queues_); }
  /// The session's activity, which the SessionTable updates
  struct Activity {
    engine::Instant last{};
    bool awake = false;
  };
  Activity& activity() { return activity_; }
  std::string description() const;  // "client 3 (ib_write_bw, pid 4711)"

 private:
  struct Pending {
    RequestSocket::Received received;
    uint32_t doorbells;  // the producer index that was visible when the request arrived
  };

  /// Calls `work`, and ends the client if memory is exhausted. Returns whether there was something
  /// to do.
  template <class Work>
  bool unless_out_of_memory(Work work);
  bool after_pumping(const RingPump::Result& result);
  void on_readable();
  void execute(RequestSocket::Received received);
  void hello(const abi::Request& request, HelloFds fds);

  Services services_;
  engine::DeviceIndex device_;
  PeerCredentials peer_;
  std::optional<FileId> client_end_;
  std::string command_name_;
  ProfileMessages profile_messages_;
  bool attached_ = false;
  std::string end_reason_;
  Activity activity_;
  RingPump ring_pump_;
  uint32_t noted_ = 0;                        // the end of the doorbells of this round
  uint32_t receive_budget_ = kReceiveBudget;  // the part that is left in this round
  ClientQueues queues_;
  ClientSignals signals_{queues_};
  ClientEvents events_;
  ClientObjects objects_;
  std::optional<Pending> pending_;
  SelfConnections self_connections_;

  RequestSocket requests_;
  UniqueFd doorbell_fd_;
  UniqueFd process_fd_;
  EventLoop::Watch doorbell_watch_;
  EventLoop::Watch process_watch_;
};

}  // namespace rocemu::daemon
