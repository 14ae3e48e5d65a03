#include "emulator/daemon/daemon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <cerrno>
#include <new>
#include <set>
#include <utility>

#include "emulator/abi/control.h"
#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/control/control_request.h"
#include "emulator/daemon/control/fault_commands.h"
#include "emulator/daemon/control/hang_report.h"
#include "emulator/daemon/control/listening_ports.h"
#include "emulator/daemon/control/network_json.h"
#include "emulator/daemon/control/time_commands.h"
#include "emulator/engine/adversarial/adversarial_class.h"
#include "emulator/scenario/scenario.h"

namespace rocemu::daemon {
namespace {

/// The processor time, on the real clock, that a program may use without sleeping before it posts
/// something: after its start (kStartTime), and after it sees the effects of a frame (kAnswerTime).
constexpr std::chrono::milliseconds kStartTime{300}, kAnswerTime{50};

/// Returns the rest of the file's contents. Throws StartError.
std::string read_to_end(const UniqueFd& file) {
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t count = read(file.get(), buffer, sizeof buffer);
    if (count == 0) return text;
    if (count < 0) fail_start("cannot read the scenario", errno);
    text.append(buffer, static_cast<size_t>(count));
  }
}

engine::FabricConfig fabric_of(const Options& options) {
  engine::FabricConfig fabric = options.fabric;
  // The report of a hang shows the latest frames. On the real clock, keeping them would cost too
  // much time.
  if (options.tell_stuck && options.clock == Clock::Kind::kVirtual) fabric.trace_frames = true;
  return fabric;
}

/// Opens the sockets of the devices, and completes the devices' configuration with properties of
/// the machine and policies of Linux.
std::vector<UdpSockets> attach_devices(Options& options,
                                       const std::vector<NetworkInterface>& interfaces) {
  std::vector<UdpSockets> sockets;
  auto& devices = options.fabric.devices;
  if (!options.udp.empty()) attach_to_interfaces(devices, options.udp, interfaces);
  for (size_t i = 0; i < options.udp.size(); ++i) {
    sockets.push_back(open_udp_sockets(
        devices[i], *find_interface(interfaces, options.udp[i].interface), options.strict_icrc));
    devices[i].source_ports = sockets.back().source_ports;
  }
  for (engine::DeviceConfig& device : devices) {
    arrange_gids(device);
    device.interfaces = interfaces_of(device.addresses, interfaces);
    device.policy.resolve_neighbors = true;
  }
  return sockets;
}

/// Returns the machine's own RDMA devices. Throws StartError if an emulated device has the name of
/// one of them.
RealDevices real_devices_beside(const Options& options) {
  RealDevices real = find_real_devices();
  for (const engine::DeviceConfig& device : options.fabric.devices) {
    if (std::ranges::find(real.names, device.name) != real.names.end())
      throw StartError(
          fmt::format("--keep-real-devices: this machine has a device {}, too; give the emulated "
                      "device another name: --device NAME",
                      device.name));
  }
  return real;
}

}  // namespace

Daemon::Daemon(Options options, const std::vector<NetworkInterface>& interfaces)
    : options_(std::move(options)),
      sockets_(attach_devices(options_, interfaces)),
      clock_(options_.clock),
      files_(options_, clock_, [this] { stop(); }),
      real_devices_(options_.keep_real_devices ? real_devices_beside(options_) : RealDevices{}),
      directory_(options_.dir, options_.fabric.devices.size(), real_devices_.first_free_number),
      sysfs_tree_(options_.topology, options_.fabric.devices.size(), interfaces, real_devices_),
      main_(fabric_of(options_), clock_, files_.capture(),
            [this](engine::HostMemory& memory) { return files_.make_recording(memory); },
            {.check = [this] { files_.check(); }, .flush = [this] { files_.flush(); }}),
      devices_(options_.fabric.devices, main_, sysfs_tree_, directory_),
      frame_steps_(main_.engine_host()) {
  if (directory_.was_stale()) {
    spdlog::warn("{}: removed what an earlier daemon had left there", directory_.path());
  }
  if (!sockets_.empty()) {
    network_ = std::make_unique<UdpNetwork>(
        main_.loop(), options_.fabric.devices, std::move(sockets_),
        [this] {
          main_.sessions().take_receives();
          main_.engine_host().begin_arrivals();
        },
        [this](std::span<const engine::ReceivedFrame> frames) {
          main_.engine_host().receive(frames);
        },
        [this](engine::DeviceIndex index, bool) { devices_.update_port(index); });
    main_.engine_host().delivery().connect(*network_);
    main_.connect(*network_);
    devices_.connect(*network_);
  }
  if (options_.tell_stuck) main_.engine_host().delivery().keep_recent();
  main_.engine_host().delivery().capture_ports(files_.port_captures());
  if (!options_.sanitizer.empty()) main_.engine_host().keep_findings(options_.sanitizer);
  main_.engine_host().delivery().on_device_changed(
      [this](engine::DeviceIndex device) { devices_.on_changed(device); });
  load_scenario();
  devices_.serve([this](engine::DeviceIndex device, UniqueFd socket, PeerCredentials peer) {
    on_connect(device, std::move(socket), peer);
  });
  cm_listener_ = std::make_unique<Listener>(
      main_.loop(), listen_at(directory_.cm_socket(), SOCK_SEQPACKET),
      [this](UniqueFd socket, PeerCredentials peer) { on_connect_to_cm(std::move(socket), peer); });
  control_ = std::make_unique<ControlServer>(control_loop_,
                                             listen_at(directory_.control_socket(), SOCK_STREAM),
                                             control_commands(), slow_control_commands());
  if (!clock_.is_virtual()) {
    control_watch_ = main_.loop().watch(
        control_loop_.fd(), EPOLLIN, [this](uint32_t) { control_loop_.wait(engine::Duration(0)); });
    if (!control_watch_) fail_start("cannot watch the control socket", errno);
  }
  end_watch_ = main_.loop().watch(end_loop_.fd(), EPOLLIN, [this](uint32_t) {
    end_loop_.wait(engine::Duration(0));
    if (stopping_) end_watch_.reset();  // the descriptor may stay readable
  });
  if (!end_watch_) fail_start("cannot watch for signals", errno);
  if (clock_.is_virtual()) make_turns();
  if (options_.keep_real_devices) {
    // Netlink is not emulated here, so libibverbs reads sysfs, which has both the real and the
    // emulated devices.
    directory_.show_nodes(real_devices_.nodes);
  } else {
    directory_.hide_real_devices();
    netlink_ = std::make_unique<NetlinkServer>(
        main_.loop(), listen_at(directory_.netlink_socket(), SOCK_SEQPACKET), devices_);
  }
  live_counters_ = std::make_unique<LiveCounters>(
      main_.loop(), listen_at(directory_.sysfs_socket(), SOCK_SEQPACKET), sysfs_tree_, directory_,
      devices_);
}

void Daemon::load_scenario() {
  if (options_.scenarios.empty()) return;
  const auto rules = options_.scenario_fd >= 0
                         ? scenario::parse_rules(read_to_end(UniqueFd(options_.scenario_fd)))
                         : scenario::load_scenarios(options_.scenarios).rules;
  scenario::check_devices(*rules, devices_.names(),
                          fmt::format("{}", fmt::join(options_.scenarios, ", ")));
  scenario::check_network(*rules, options_.fabric.network.get(),
                          fmt::format("{}", fmt::join(options_.scenarios, ", ")));
  main_.engine_host().submit(engine::AddRules{rules});
}

void Daemon::on_connect(engine::DeviceIndex device, UniqueFd socket, PeerCredentials peer) {
  using namespace engine::adversarial;
  const bool fills_undefined = Classes(options_.fabric.adversarial).has(Class::kUndefined);
  auto session = std::make_unique<ClientSession>(
      ClientSession::Services{main_.engine_host(), main_.loop(), main_.memory(), main_.sessions(),
                              clock_, options_.exact_memory, fills_undefined},
      main_.sessions().next_id(), device, std::move(socket), peer);
  spdlog::debug("{} opens {}", session->description(), options_.fabric.devices[device.value].name);
  main_.sessions().add(std::move(session));
}

void Daemon::on_connect_to_cm(UniqueFd socket, PeerCredentials peer) {
  auto session = std::make_unique<CmSession>(
      CmSession::Services{main_.engine_host(), main_.loop(), main_.cm_sessions()},
      main_.cm_sessions().next_channel(), std::move(socket), peer);
  spdlog::debug("pid {} opens event channel {}", peer.pid, session->channel().value);
  main_.cm_sessions().add(std::move(session));
}

ControlServer::Commands Daemon::control_commands() {
  const auto version = [this](const Json&) {
    Json json;
    json["version"] = ROCEMU_VERSION;
    json["abi"] = abi::kVersion;
    json["pid"] = getpid();
    json["devices"] = devices_.names();
    return json;
  };
  const auto show = [this](const Json&) {
    return state_json(devices_.snapshot(), main_.sessions().list());
  };
  const auto network = [this](const Json&) {
    return network_json(main_.engine_host().engine(), clock_.now());
  };
  const auto set = [this](const Json& request) {
    const auto port = text_of(request, "port");
    const auto removed = flag_of(request, "removed");
    if (port.has_value() == removed.has_value()) {
      throw ControlServer::Refusal(R"(either "port" or "removed" must be given)");
    }
    const auto name = text_of(request, "device");
    if (!name) throw ControlServer::Refusal(R"("device" must name the device)");
    const engine::DeviceIndex device = devices_.named(*name);
    if (port) {
      devices_.set_port(device, *port);
    } else if (*removed) {
      devices_.remove(device);
    } else {
      throw ControlServer::Refusal(
          R"("removed" can only be true: a removed device cannot be restored)");
    }
    return Json::object();
  };
  const auto shutdown = [this](const Json&) {
    stop();
    return Json::object();
  };
  ControlServer::Commands commands =
      fault_commands(main_.engine_host(), devices_.names(), options_.fabric.network);
  commands.merge(time_commands(main_.engine_host(), main_.sessions(), clock_, time_is_held_));
  const auto idle = [this](const Json&) { return Json{{"idle", is_idle()}}; };
  const auto hang = [this](const Json& request) { return this->hang(request); };
  const auto listening = [this](const Json& request) {
    const auto port = number_of(request, "port", 1, UINT16_MAX);
    if (!port) throw ControlServer::Refusal(R"("port" must be a port number)");
    return Json{{"listening", listens(devices_.snapshot(), static_cast<uint16_t>(*port))}};
  };
  const auto sync = [this](const Json&) {
    if (!files_.sync_recording())
      throw ControlServer::Refusal("this NIC does not record; start it with --record DIR");
    return Json{{"record", options_.record}};
  };
  const auto sanitizer = [this](const Json&) {
    if (options_.sanitizer.empty())
      throw ControlServer::Refusal("this NIC does not check for misuse; start it with --sanitize");
    return Json{{"directory", options_.sanitizer}};
  };
  commands.insert({{"version", taking({}, version)},
                   {"idle", taking({}, idle)},
                   {"show", taking({}, show)},
                   {"network", taking({}, network)},
                   {"set", taking({"device", "port", "removed"}, set)},
                   {"listening", taking({"port"}, listening)},
                   {"hang", taking({"serial"}, hang)},
                   {"sync", taking({}, sync)},
                   {"sanitizer", taking({}, sanitizer)},
                   {"shutdown", taking({}, shutdown)}});
  return commands;
}

ControlServer::SlowCommands Daemon::slow_control_commands() {
  if (!clock_.is_virtual()) {
    response_wait_ = std::make_unique<ResponseWait>(main_, ancestor(), [this] {
      frame_steps_.advance();
      if (frame_steps_.pending()) response_wait_->begin(kAnswerTime);
    });
  }
  const auto step = [this](const Json& request, ControlServer::Done done) {
    taking({"frames"}, [&](const Json&) {
      frame_steps_.begin(request, std::move(done));
      return Json();
    })(request);
    if (response_wait_ != nullptr) response_wait_->begin(kStartTime);
  };
  return {{"step", step}};
}

std::optional<pid_t> Daemon::ancestor() const {
  return options_.run_pid > 0 ? std::optional(options_.run_pid) : std::nullopt;
}

bool Daemon::is_idle() {
  return !main_.sessions().pump_in_order() && main_.engine_host().engine().is_idle();
}

void Daemon::make_turns() {
  Turns::Requests requests{.fd = main_.loop().fd(),
                           .serve = [this] { virtual_time_->serve(); },
                           .clients = [this] { return pids_of_clients(main_); }};
  std::unique_ptr<StopLog> stop_log;
  if (options_.schedule.is_any() && !options_.record.empty())
    stop_log = std::make_unique<StopLog>(options_.record, options_.umask);
  turns_ = std::make_unique<Turns>(
      Turns::Options{.seed = options_.fabric.seed,
                     .sleeps_between_turns = options_.sleep_between_turns,
                     .tells_exits = options_.tell_exits,
                     .ancestor = ancestor(),
                     .stop_log = std::move(stop_log)},
      listen_at(directory_.turns_socket(), SOCK_SEQPACKET), std::move(requests));
}

void Daemon::run_on_virtual_clock() {
  VirtualTime time({.schedule = options_.schedule,
                    .reports_hangs = options_.tell_stuck && ancestor(),
                    .polls_are_exact = options_.fabric.network != nullptr},
                   *turns_, main_, control_loop_, clock_, time_is_held_, [this] {
                     files_.flush();
                     files_.check();
                     return frame_steps_.advance();
                   });
  virtual_time_ = &time;
  if (options_.tell_stuck && ancestor()) {
    time.on_stuck([this](uint32_t serial) { tell_stuck(serial); });
  }
  for (bool done = false; !done;) {
    try {
      time.run(stopping_);
      // The run can end before the daemon must stop. Until then, the daemon still answers requests
      // at the control socket.
      while (!stopping_) {
        pollfd ready[] = {{end_loop_.fd(), POLLIN, 0}, {control_loop_.fd(), POLLIN, 0}};
        poll(ready, 2, -1);
        end_loop_.wait(engine::Duration(0));
        control_loop_.wait(engine::Duration(0));
      }
      done = true;
    } catch (const std::bad_alloc&) {  // not caused by a client's request, and tried again
      spdlog::error("out of memory");
    }
  }
  virtual_time_ = nullptr;
}

void Daemon::tell_stuck(uint32_t serial) const {
  sigval value{};
  value.sival_int = static_cast<int>(serial);
  sigqueue(*ancestor(), SIGURG, value);
}

Json Daemon::hang(const Json& request) {
  const auto serial = number_of(request, "serial", 0, UINT32_MAX);
  if (serial &&
      (virtual_time_ == nullptr || !virtual_time_->end_stuck(static_cast<uint32_t>(*serial)))) {
    throw ControlServer::Refusal("programs have acted since the deadlock was reported");
  }
  files_.flush();
  return hang_report(main_, virtual_time_ != nullptr ? virtual_time_->hangs_since() : clock_.now());
}

bool Daemon::run() {
  if (clock_.is_virtual()) {
    run_on_virtual_clock();
  } else {
    main_.run(stopping_, options_.busy_poll);
  }
  files_.finish();
  // The directory is removed before the sockets close. A client whose connection ends therefore
  // finds no directory.
  directory_.remove();
  return !files_.has_failed();
}

void Daemon::end_programs() {
  std::set<pid_t> programs;
  for (const ClientSession* session : main_.sessions().list()) programs.insert(session->peer().pid);
  for (const pid_t pid : main_.cm_sessions().pids()) programs.insert(pid);
  if (!programs.empty())
    spdlog::warn(
        "rocemu was killed, so its NIC has ended; the programs of the run get SIGTERM: "
        "pid {}",
        fmt::join(programs, ", "));
  for (const pid_t pid : programs) {
    if (pid <= 0) continue;  // the process is in a PID namespace outside ours
    kill(pid, SIGTERM);
    kill(pid, SIGCONT);
  }
}

}  // namespace rocemu::daemon
