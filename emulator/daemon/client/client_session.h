// One connection to a device: one ibv_context. Speaks the control protocol of abi/control.h, and
// owns what the client has of the daemon: queues, event sockets, the way to its memory. It never
// waits for its client, and whatever the client does wrong ends this session only.
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

/// What a session tells its owner. Neither call destroys the session at once.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  virtual void wake(ClientSession& session) = 0;
  virtual void ended(ClientSession& session) = 0;
  /// An object goes: sooner or later its memory is to be given back.
  virtual void destroyed() {}
  /// It has said hello.
  virtual void attached(ClientSession&) {}
  /// The attached session whose client has this as its end of the connection; null if none has.
  virtual ClientSession* find_by_client_end(const FileId& client_end) = 0;
  /// On a virtual clock: the number of the round, for clients that come in it.
  virtual uint32_t round() const { return 0; }
  /// Which operations clients have to ask for (abi::DoorbellRing::asked_for).
  virtual uint32_t asked_for() const { return 0; }
  /// abi::DoorbellRing::pollers_per_processor.
  virtual uint32_t pollers_per_processor() const { return 0; }
};

class ClientSession {
 public:
  /// Doorbells and WQEs handled at a time, before it is the next client's turn.
  static constexpr uint32_t kPumpBudget = 256;
  /// The same of receives, which are cheap and come before what others send: in a round there are
  /// seldom more, and then a message may find that its receive is not there yet (an RNR NAK).
  static constexpr uint32_t kReceiveBudget = 1 << 14;
  /// The same on a virtual clock, where a round has all kinds.
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
  /// The queues stay in the program's memory as they are: it still maps them.
  ~ClientSession() { queues_.arena.close(); }
  ClientSession(const ClientSession&) = delete;
  ClientSession& operator=(const ClientSession&) = delete;

  /// A round in three parts, each for all sessions before the next, so that what was posted before
  /// counts before: a receive that one context posted is there for what another sent afterwards,
  /// and a CQ that it armed is armed when that completes. First, how many doorbells this round is
  /// about; true if there are any.
  bool note_doorbells();
  /// Then the receives and arms until now.
  void take_receives();
  /// Then the doorbells noted, and the request that waited for them. True if there were any.
  bool pump();
  /// The same for all doorbells noted, in an order of our own (RingPump::run_by_object).
  bool pump_by_object();

  const ClientSignals& signals() const { return signals_; }

  void deliver(const engine::CompletionEvent& event);
  void deliver(const engine::AsyncEvent& event);
  void deliver(const engine::DeviceLost&) { events_.close_channels(); }

  /// The first reason counts. An empty one is an orderly goodbye.
  void end(std::string reason);
  bool has_ended() const { return queues_.ended; }
  const std::string& end_reason() const { return end_reason_; }

  engine::ClientId id() const { return queues_.id; }
  engine::DeviceIndex device() const { return device_; }
  bool is_attached() const { return attached_; }  // said Hello: the engine knows it
  /// What the client's end of the connection is; nothing before the Hello.
  const std::optional<FileId>& client_end() const { return client_end_; }
  const PeerCredentials& peer() const { return peer_; }
  const ClientEvents& events() const { return events_; }
  const std::string& command_name() const { return command_name_; }
  ClientQueues& queues() { return queues_; }
  const ClientQueues& queues() const { return queues_; }
  /// Hands over what the client had, to be destroyed little by little. The session must have ended.
  ClientQueues take_queues() { return std::move(queues_); }
  /// Kept by the SessionTable.
  struct Activity {
    engine::Instant last{};
    bool awake = false;
  };
  Activity& activity() { return activity_; }
  std::string description() const;  // "client 3 (ib_write_bw, pid 4711)"

 private:
  struct Pending {
    RequestSocket::Received received;
    uint32_t doorbells;  // the producer index that was visible when it came
  };

  /// Ends the client if there is no memory for the work. True if there was something to do.
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
  uint32_t noted_ = 0;                        // where the doorbells of this round end
  uint32_t receive_budget_ = kReceiveBudget;  // what is left of it in this round
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
