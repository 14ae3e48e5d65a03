// The complete daemon, which connects its parts and implements all control commands
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/base/listener.h"
#include "emulator/daemon/control/control_server.h"
#include "emulator/daemon/control/frame_steps.h"
#include "emulator/daemon/daemon_options.h"
#include "emulator/daemon/kernel/live_counters.h"
#include "emulator/daemon/kernel/netlink_server.h"
#include "emulator/daemon/kernel/runtime_directory.h"
#include "emulator/daemon/kernel/sysfs_tree.h"
#include "emulator/daemon/net/network_interface.h"
#include "emulator/daemon/net/udp_network.h"
#include "emulator/daemon/run/response_wait.h"
#include "emulator/daemon/run/turns.h"
#include "emulator/daemon/run/virtual_time.h"
#include "emulator/daemon/run/worker.h"
#include "emulator/daemon/run_files.h"
#include "emulator/daemon/served_devices.h"

namespace rocemu::daemon {

class Daemon {
 public:
  /// Starts to serve all sockets, on a machine that has the network interfaces `interfaces`. Throws
  /// StartError or UsageError, and leaves nothing behind in that case.
  explicit Daemon(Options options,
                  const std::vector<NetworkInterface>& interfaces = list_network_interfaces());

  /// Runs until stop() is called, and removes the runtime directory. Returns false if the daemon
  /// ended by itself because the run could no longer be recorded.
  bool run();
  void stop() { stopping_ = true; }

  /// Sends SIGTERM to the programs that used the devices. Must be called after run() has returned
  /// if `rocemu run` was killed, because `rocemu run` can then no longer end these programs.
  void end_programs();

  /// Returns the loop for events that end the daemon: signals, and the end of its parent.
  EventLoop& loop() { return end_loop_; }

 private:
  void on_connect(engine::DeviceIndex device, UniqueFd socket, PeerCredentials peer);
  void on_connect_to_cm(UniqueFd socket, PeerCredentials peer);
  ControlServer::Commands control_commands();
  ControlServer::SlowCommands slow_control_commands();
  /// Returns the process from which all programs descend; nothing if there is none.
  std::optional<pid_t> ancestor() const;
  /// Handles the doorbells that have been rung. Returns whether there were none, no frame is in
  /// flight, and no client waits for a reply.
  bool is_idle();
  void load_scenario();
  void make_turns();
  /// Runs the daemon's loop on a virtual clock (VirtualTime).
  void run_on_virtual_clock();
  /// Sends SIGURG with `serial` to the process of `rocemu run`, which then checks whether the
  /// programs hang and sends {"command":"hang"}.
  void tell_stuck(uint32_t serial) const;
  Json hang(const Json& request);

  Options options_;
  std::vector<UdpSockets> sockets_;  // until the network takes them
  Clock clock_;
  RunFiles files_;
  EventLoop control_loop_;  // the control socket's, which is served last in lockstep
  EventLoop end_loop_;
  RealDevices real_devices_;  // none: they are hidden
  RuntimeDirectory directory_;
  SysfsTree sysfs_tree_;
  Worker main_;
  ServedDevices devices_;
  std::unique_ptr<UdpNetwork> network_;  // null: no device is attached to UDP
  std::unique_ptr<Listener> cm_listener_;
  FrameSteps frame_steps_;
  std::unique_ptr<ResponseWait> response_wait_;  // of frame_steps_; null on a virtual clock
  std::unique_ptr<ControlServer> control_;
  EventLoop::Watch control_watch_, end_watch_;
  std::unique_ptr<Turns> turns_;  // null: programs take no turns
  std::unique_ptr<NetlinkServer> netlink_;
  std::unique_ptr<LiveCounters> live_counters_;
  bool stopping_ = false;
  VirtualTime* virtual_time_ = nullptr;  // while it runs
  bool time_is_held_ = false;            // by a test, on a virtual clock
};

}  // namespace rocemu::daemon
