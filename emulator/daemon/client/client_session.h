// One connection to a device, that is one ibv_context. It implements the control protocol of
// abi/control.h, and owns the client's resources in the daemon: queues, event sockets, the access
// to its memory. It never waits for its client, and every mistake of the client ends this session
// only.
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

/// The owner of sessions, which they notify. No function of this interface destroys a session
/// immediately.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  virtual void wake(ClientSession& session) = 0;
  virtual void ended(ClientSession& session) = 0;
  /// An object was destroyed: its memory must be released at some later time.
  virtual void destroyed() {}
  /// The session has received its hello.
  virtual void attached(ClientSession&) {}
  /// Returns the attached session whose client has this as its end of the connection, or null.
  virtual ClientSession* find_by_client_end(const FileId& client_end) = 0;
  /// Returns the number of the round on a virtual clock, for new clients.
  virtual uint32_t round() const { return 0; }
  /// Returns the operations for which clients must ask the daemon (abi::DoorbellRing::asked_for).
  virtual uint32_t asked_for() const { return 0; }
  /// abi::DoorbellRing::pollers_per_processor.
  virtual uint32_t pollers_per_processor() const { return 0; }
};

class ClientSession {
 public:
  /// The number of doorbells and WQEs of a client that are handled before the next client's turn.
  static constexpr uint32_t kPumpBudget = 256;
  /// The same number for receives. They cost little, and are handled before the sends of other
  /// clients. A round seldom has more receives; if it has, a message may arrive before its receive
  /// is posted (an RNR NAK).
  static constexpr uint32_t kReceiveBudget = 1 << 14;
  /// The same number on a virtual clock, for all kinds of doorbells together.
  static constexpr uint32_t kOrderedBudget = 1 << 14;

  struct Services {
    EnginePort& engine;
    EventLoop& loop;
    ProcessMemory& memory;
    SessionOwner& owner;
    const Clock& clock;
    /// See abi::DoorbellRing.
    bool has_exact_memory = false;
    bool fills_undefined = false;  // `--adversarial=undefined`
  };

  ClientSession(const Services& services, engine::ClientId id, engine::DeviceIndex device,
                UniqueFd socket, PeerCredentials peer);
  /// The queues remain in the program's memory unchanged, since the program still maps them.
  ~ClientSession() { queues_.arena.close(); }
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  /// A round has three parts, each of which is done for all sessions before the next part. So
  /// earlier posts take effect earlier: a receive that one context posted exists when another
  /// context's later send arrives, and a CQ that it armed is armed when that send completes.
  ///
  /// The first part notes the number of doorbells for this round. Returns whether there are any.
  bool note_doorbells();
  /// The second part handles the receives and arms that have been posted until now.
  void take_receives();
  /// The third part handles the noted doorbells, and the request that waited for them. Returns
  /// whether there were any.
  bool pump();
  /// Handles all noted doorbells, too, but in an order that does not depend on the client
  /// (RingPump::run_by_object).
  bool pump_by_object();

  const ClientSignals& signals() const { return signals_; }

  void deliver(const engine::CompletionEvent& event);
  void deliver(const engine::AsyncEvent& event);
  void deliver(const engine::DeviceLost&) { events_.close_channels(); }

  /// Ends the session. The first reason is kept. An empty reason is an orderly end.
  void end(std::string reason);
  bool has_ended() const { return queues_.ended; }
  const std::string& end_reason() const { return end_reason_; }

  engine::ClientId id() const { return queues_.id; }
  engine::DeviceIndex device() const { return device_; }
  bool is_attached() const { return attached_; }  // received its hello: the engine knows the client
  /// Returns the client's end of the connection; nothing before the hello.
  const std::optional<FileId>& client_end() const { return client_end_; }
  const PeerCredentials& peer() const { return peer_; }
  const ClientEvents& events() const { return events_; }
  const std::string& command_name() const { return command_name_; }
  ClientQueues& queues() { return queues_; }
  const ClientQueues& queues() const { return queues_; }
  /// Returns the client's queues, which are then destroyed in parts. The session must have ended.
  ClientQueues take_queues() { return std::move(queues_); }
  /// Maintained by the SessionTable.
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

  /// Ends the client if there is no memory for the work. Returns whether there was something to do.
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
