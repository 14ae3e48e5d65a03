// The engine with its clients, and the daemon's loop on the real clock
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "emulator/capture/pcap_writer.h"
#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/base/network_port.h"
#include "emulator/daemon/client/client_memory.h"
#include "emulator/daemon/client/session_table.h"
#include "emulator/daemon/memory/process_memory.h"
#include "emulator/daemon/rdmacm/cm_session_table.h"
#include "emulator/daemon/run/engine_host.h"
#include "emulator/journal/recording.h"

namespace rocemu::daemon {

class Worker {
 public:
  /// Creates the recording; returns null if nothing is recorded.
  using MakeRecording = std::function<std::unique_ptr<journal::Recording>(engine::HostMemory&)>;
  /// Functions that the loop calls for the files of the run
  struct Files {
    std::function<void()> check = [] {};  // called from time to time
    std::function<void()> flush = [] {};  // called before a sleep
  };

  /// `capture` may be null. Throws StartError.
  Worker(const engine::FabricConfig& fabric, const Clock& clock, capture::PcapWriter* capture,
         const MakeRecording& make_recording, Files files);

  /// Connects the network, which must outlive run(). Without a network, no frames arrive from
  /// outside or leave.
  void connect(NetworkPort& medium) { medium_ = &medium; }

  /// Serves clients on the real clock until `stopping` is true. If `busy_poll` is true, the daemon
  /// never yields its processor.
  void run(const bool& stopping, bool busy_poll);
  /// Destroys the sessions that have ended. Returns whether there were any.
  bool reap();

  EventLoop& loop() { return loop_; }
  EngineHost& engine_host() { return engine_host_; }
  SessionTable& sessions() { return sessions_; }
  CmSessionTable& cm_sessions() { return cm_sessions_; }
  const CmSessionTable& cm_sessions() const { return cm_sessions_; }
  ProcessMemory& memory() { return memory_; }
  journal::Recording* recording() { return recording_.get(); }

 private:
  bool poll(std::optional<engine::Duration> timeout) { return loop_.wait(timeout) > 0; }
  void serve(const bool& stopping, bool busy_poll);
  void sleep(const bool& stopping);
  /// Wakes the threads that wait for several completions, if no more arrive without a doorbell:
  /// with a network they may.
  void end_waits();
  /// Continues the messages whose direct copies have ended. Returns whether there were any.
  bool finish_copies(engine::Instant now);
  /// Writes payload that programs have not taken (ProcessMemory::write_untaken).
  void write_untaken(engine::Instant now);
  /// Does work that is less urgent than serving clients. Returns the time after which there is more
  /// such work, if it is known.
  std::optional<engine::Duration> do_before_sleep(engine::Instant now);
  /// Returns the memory of destroyed objects to the system, but at most once a second. If it is too
  /// early, returns the time that is left. If few objects were destroyed, waits until the engine
  /// has nothing left to do for them, such as the timewait of connections.
  std::optional<engine::Duration> give_memory_back(engine::Instant now, bool is_idle);
  /// Returns memory to the system every 20 ms while very many objects are being destroyed, and once
  /// after that.
  void give_memory_back_in_parts(engine::Instant now);

  const Clock& clock_;
  EventLoop loop_;
  ProcessMemory memory_;
  SessionTable sessions_;
  CmSessionTable cm_sessions_;
  ClientMemory client_memory_;
  std::unique_ptr<journal::Recording> recording_;
  EngineHost engine_host_;
  Files files_;
  EventLoop::Watch memory_watch_;
  NetworkPort* medium_ = nullptr;
  engine::Instant looked_for_untaken_{};
  bool releasing_ = false;  // very many objects
  // The following members describe what has happened since memory was last returned to the system.
  bool somebody_left_ = false;
  uint64_t destroyed_before_ = 0;  // objects until then
  engine::Instant gave_back_{};
};

}  // namespace rocemu::daemon
