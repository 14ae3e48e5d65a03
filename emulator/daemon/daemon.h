// The daemon put together: sockets, sessions, NIC, and the loop that runs them in one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "emulator/capture/pcap_writer.h"
#include "emulator/daemon/client_memory.h"
#include "emulator/daemon/clock.h"
#include "emulator/daemon/control_server.h"
#include "emulator/daemon/event_loop.h"
#include "emulator/daemon/nic.h"
#include "emulator/daemon/options.h"
#include "emulator/daemon/process_memory.h"
#include "emulator/daemon/runtime_directory.h"
#include "emulator/daemon/session_table.h"
#include "emulator/daemon/unix_socket.h"

namespace rocemu::daemon {

class Daemon {
 public:
  /// Everything is served when this returns. Throws StartError and UsageError, and leaves nothing
  /// behind then.
  explicit Daemon(Options options);

  /// Returns after stop(), with the runtime directory removed.
  void run();
  void stop() { stopping_ = true; }

  EventLoop& loop() { return loop_; }

 private:
  void serve_devices();
  void on_connect(Acceptor& acceptor, engine::DeviceIndex device);
  ControlServer::Commands control_commands();
  bool poll(std::optional<engine::Duration> timeout);
  void sleep();
  void flush_capture();

  Options options_;
  Clock clock_;
  std::unique_ptr<capture::PcapWriter> capture_;
  EventLoop loop_;
  ProcessMemory memory_;
  RuntimeDirectory directory_;
  SessionTable sessions_;
  ClientMemory client_memory_;
  Nic nic_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::vector<EventLoop::Watch> watches_;
  std::unique_ptr<ControlServer> control_;
  bool stopping_ = false;
};

}  // namespace rocemu::daemon
