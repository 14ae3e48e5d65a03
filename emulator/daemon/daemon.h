// The daemon put together: which part serves what, and all that can be commanded.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "emulator/capture/pcap_writer.h"
#include "emulator/daemon/base/clock.h"
#include "emulator/daemon/base/event_loop.h"
#include "emulator/daemon/base/listener.h"
#include "emulator/daemon/base/unix_socket.h"
#include "emulator/daemon/control/control_server.h"
#include "emulator/daemon/control/frame_steps.h"
#include "emulator/daemon/daemon_options.h"
#include "emulator/daemon/kernel/live_counters.h"
#include "emulator/daemon/kernel/netlink_server.h"
#include "emulator/daemon/kernel/runtime_directory.h"
#include "emulator/daemon/kernel/sysfs_tree.h"
#include "emulator/daemon/net/udp_network.h"
#include "emulator/daemon/run/programs_turn.h"
#include "emulator/daemon/run/turns.h"
#include "emulator/daemon/run/virtual_time.h"
#include "emulator/daemon/run/worker.h"

namespace rocemu::daemon {

class Daemon : private NldevSource {
 public:
  /// Everything is served when this returns. Throws StartError and UsageError, and leaves nothing
  /// behind then.
  explicit Daemon(Options options);

  /// Returns after stop(), with the runtime directory removed; false if it ended by itself because
  /// the run could no longer be recorded.
  bool run();
  void stop() { stopping_ = true; }

  /// Ends the programs that used the devices, by SIGTERM: once run() has returned, if `rocemu run`
  /// was killed and so can no longer end them itself.
  void end_programs();

  /// For what ends it: signals, the end of its parent.
  EventLoop& loop() { return end_loop_; }

 private:
  void serve_devices();
  void serve(const std::string& path, std::function<void(UniqueFd, PeerCredentials)> on_connect);
  void on_connect(engine::DeviceIndex device, UniqueFd socket, PeerCredentials peer);
  void on_connect_to_cm(UniqueFd socket, PeerCredentials peer);
  ControlServer::Commands control_commands();
  ControlServer::SlowCommands slow_control_commands();
  /// The process that all programs descend from, if there is one.
  std::optional<pid_t> ancestor() const;
  /// Nothing is under way, and nobody waits for an answer. Rings are looked at before.
  bool is_idle();
  engine::DeviceIndex named_device(const Json& request) const;
  void set_port(engine::DeviceIndex index, const std::string& port);
  void remove_device(engine::DeviceIndex index, bool removed);
  void load_scenario();
  std::vector<std::string> device_names() const;
  void write_sysfs_again(engine::DeviceIndex device);
  /// So that nobody finds or opens it any more.
  void hide_device(engine::DeviceIndex device);
  /// A port is up if the user wants it and its interface is.
  void update_port(engine::DeviceIndex device);

  size_t device_count() const override { return options_.fabric.devices.size(); }
  bool has_device(engine::DeviceIndex index) const override { return !removed_.contains(index); }
  SysfsDevice device(engine::DeviceIndex index) override;
  engine::FabricSnapshot snapshot() override;
  std::vector<NldevClient> clients() override;
  std::optional<pid_t> pid_of(engine::CmChannelId channel) const override;

  void make_turns();
  /// See VirtualTime.
  void run_on_virtual_clock();
  /// Sends SIGURG with the serial to the parent, which looks whether the programs hang and asks for
  /// {"command":"hang"}.
  void tell_stuck(uint32_t serial) const;
  Json hang(const Json& request);

  void flush_files();
  /// Tells what is missing from it.
  void finish_capture();
  /// All that has happened can be read in the recording.
  Json sync_recording();
  void check_recording();

  Options options_;
  std::vector<UdpSockets> sockets_;  // until the network has them
  Clock clock_;
  std::unique_ptr<capture::PcapWriter> capture_;
  EventLoop control_loop_;  // the control socket's: in lockstep it has its turn last
  EventLoop end_loop_;
  RuntimeDirectory directory_;
  SysfsTree sysfs_tree_;
  Worker main_;
  std::set<engine::DeviceIndex> removed_;
  std::unique_ptr<UdpNetwork> network_;  // null: no device is attached to UDP
  std::vector<bool> wanted_down_;        // ports, by `rocemu set`
  std::vector<std::unique_ptr<Listener>>
      listeners_;  // of the devices, in their order, then rdma_cm
  FrameSteps frame_steps_;
  std::unique_ptr<ProgramsTurn> programs_turn_;  // of frame_steps_; null on a virtual clock
  std::unique_ptr<ControlServer> control_;
  EventLoop::Watch control_watch_, end_watch_;
  std::unique_ptr<Turns> turns_;  // null: programs take none
  std::unique_ptr<NetlinkServer> netlink_;
  std::unique_ptr<LiveCounters> live_counters_;
  bool stopping_ = false;
  VirtualTime* virtual_time_ = nullptr;  // while it runs
  bool time_is_held_ = false;            // by a test, of a virtual clock
  bool recording_failed_ = false;
};

}  // namespace rocemu::daemon
