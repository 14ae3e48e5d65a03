#include "emulator/daemon/daemon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <set>
#include <utility>

#include "emulator/abi/control.h"
#include "emulator/daemon/base/start_error.h"
#include "emulator/daemon/control/control_request.h"
#include "emulator/daemon/control/fault_commands.h"
#include "emulator/daemon/control/hang_report.h"
#include "emulator/daemon/control/listening.h"
#include "emulator/daemon/control/time_commands.h"
#include "emulator/scenario/scenario.h"

namespace rocemu::daemon {
namespace {

/// How long, of its own processor time, a program that does not sleep may take on the real clock
/// until it posts something: one that has just been started, and one that sees a frame's effects.
constexpr std::chrono::milliseconds kStartTime{300}, kAnswerTime{50};

/// Nobody else may see what the NIC makes for itself; who may read captures and recordings, the
/// user's umask says.
class UsersUmask {
 public:
  explicit UsersUmask(mode_t mask) : own_(umask(mask)) {}
  ~UsersUmask() { umask(own_); }
  UsersUmask(const UsersUmask&) = delete;
  UsersUmask& operator=(const UsersUmask&) = delete;

 private:
  mode_t own_;
};

std::unique_ptr<capture::PcapWriter> make_capture(const Options& options, const Clock& clock) {
  if (options.capture.empty()) return nullptr;
  const UsersUmask for_its_file(options.umask);
  capture::CaptureFile file =
      options.capture_fd < 0
          ? capture::open_capture_file(options.capture)
          : capture::CaptureFile{options.capture, UniqueFd(options.capture_fd), -1, ""};
  auto capture = std::make_unique<capture::PcapWriter>(std::move(file), clock.wall_start(),
                                                       capture::SlowReader::kMissesFrames,
                                                       options.capture_limits);
  if (!capture->is_open()) throw StartError(capture->error());
  return capture;
}

std::unique_ptr<journal::Recording> make_recording(const Options& options, const Clock& clock,
                                                   engine::HostMemory& memory) {
  if (options.record.empty()) return nullptr;
  const UsersUmask for_its_files(options.umask);
  if (mkdir(options.record.c_str(), 0777) != 0 && errno != EEXIST) {
    fail_start("cannot make the directory " + options.record, errno);
  }
  journal::Header header;
  header.fabric = options.fabric;
  header.clock = clock.is_virtual() ? "lockstep" : "real";
  header.wall_start_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock.wall_start().time_since_epoch())
          .count();
  auto recording =
      std::make_unique<journal::Recording>(options.record, header, memory, options.record_limit);
  if (const std::string error = recording->take_error(); !error.empty()) throw StartError(error);
  return recording;
}

/// Throws StartError.
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
  // Where frames are kept for a report. On the real clock that would cost speed.
  if (options.tell_stuck && options.clock == Clock::Kind::kVirtual) fabric.trace_frames = true;
  return fabric;
}

/// Opens the devices' sockets, and completes their configuration with the machine's properties and
/// Linux's behavior.
std::vector<UdpSockets> attach_devices(Options& options) {
  std::vector<UdpSockets> sockets;
  const std::vector<NetworkInterface> interfaces = list_network_interfaces();
  auto& devices = options.fabric.devices;
  if (!options.udp.empty()) attach_to_interfaces(devices, options.udp, interfaces);
  for (size_t i = 0; i < options.udp.size(); ++i) {
    sockets.push_back(open_udp_sockets(
        devices[i], *find_interface(interfaces, options.udp[i].interface), options.strict_icrc));
    devices[i].source_ports = sockets.back().source_ports;
  }
  for (engine::DeviceConfig& device : devices) {
    device.interfaces = interfaces_of(device.addresses, interfaces);
    device.policy.resolve_neighbors = true;
  }
  return sockets;
}

}  // namespace

Daemon::Daemon(Options options)
    : options_(std::move(options)),
      sockets_(attach_devices(options_)),
      clock_(options_.clock),
      capture_(make_capture(options_, clock_)),
      directory_(options_.dir, options_.fabric.devices.size()),
      sysfs_tree_(options_.topology, options_.fabric.devices.size(), list_network_interfaces()),
      main_(fabric_of(options_), clock_, capture_.get(),
            [this](engine::HostMemory& memory) { return make_recording(options_, clock_, memory); },
            {.check = [this] { check_recording(); }, .flush = [this] { flush_files(); }}),
      wanted_down_(options_.fabric.devices.size()),
      frame_steps_(main_.engine_host()) {
  if (directory_.was_stale()) {
    spdlog::warn("{}: removed what an earlier daemon had left there", directory_.path());
  }
  std::vector<SysfsDevice> devices;
  for (size_t i = 0; i < options_.fabric.devices.size(); ++i) {
    devices.push_back(device({static_cast<uint32_t>(i)}));
  }
  directory_.write_sysfs(sysfs_tree_.files(devices));
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
        [this](engine::DeviceIndex index, bool) { update_port(index); });
    main_.engine_host().delivery().connect(*network_);
    main_.connect(*network_);
    for (uint32_t i = 0; i < device_count(); ++i) {
      if (!network_->is_up({i})) update_port({i});
    }
  }
  if (options_.tell_stuck) main_.engine_host().delivery().keep_recent();
  if (!options_.sanitizer.empty()) main_.engine_host().keep_findings(options_.sanitizer);
  main_.engine_host().delivery().on_device_changed(
      [this](engine::DeviceIndex device) { write_sysfs_again(device); });
  load_scenario();
  serve_devices();
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
    if (stopping_) end_watch_.reset();  // what told us so may stay readable
  });
  if (!end_watch_) fail_start("cannot watch for signals", errno);
  if (clock_.is_virtual()) make_turns();
  NldevSource& source = *this;
  netlink_ = std::make_unique<NetlinkServer>(
      main_.loop(), listen_at(directory_.netlink_socket(), SOCK_SEQPACKET), source);
  live_counters_ = std::make_unique<LiveCounters>(
      main_.loop(), listen_at(directory_.sysfs_socket(), SOCK_SEQPACKET), sysfs_tree_, directory_,
      source);
}

std::vector<std::string> Daemon::device_names() const {
  std::vector<std::string> names;
  for (const engine::DeviceConfig& device : options_.fabric.devices) names.push_back(device.name);
  return names;
}

void Daemon::load_scenario() {
  if (options_.scenarios.empty()) return;
  const auto rules = options_.scenario_fd >= 0
                         ? scenario::parse_rules(read_to_end(UniqueFd(options_.scenario_fd)))
                         : scenario::load_scenarios(options_.scenarios).rules;
  scenario::check_devices(*rules, device_names(),
                          fmt::format("{}", fmt::join(options_.scenarios, ", ")));
  main_.engine_host().submit(engine::AddRules{rules});
}

void Daemon::write_sysfs_again(engine::DeviceIndex index) {
  if (!main_.engine_host().engine().has_device(index)) return hide_device(index);
  engine::DeviceConfig& config = options_.fabric.devices[index.value];
  config.addresses = main_.engine_host().engine().addresses(index);
  for (const SysfsFile& file : sysfs_tree_.files_of(device(index))) {
    if (!directory_.replace_sysfs(file)) {
      spdlog::error("sysfs does not tell how {} is now: {}", config.name, std::strerror(errno));
    }
  }
}

SysfsDevice Daemon::device(engine::DeviceIndex index) {
  const engine::DeviceConfig& config = options_.fabric.devices[index.value];
  const EngineHost::DeviceFacts facts = main_.engine_host().device_facts(index);
  return {config.name, config.addresses, facts.device,
          facts.port,  index.value,      sysfs_tree_.netdevs_of(config.addresses)};
}

engine::FabricSnapshot Daemon::snapshot() {
  engine::FabricSnapshot snapshot = main_.engine_host().engine().snapshot();
  if (network_ != nullptr) network_->append_counters(snapshot);
  return snapshot;
}

std::vector<NldevClient> Daemon::clients() {
  std::vector<NldevClient> clients;
  for (const ClientSession* session : main_.sessions().list()) {
    if (session->is_attached()) {
      clients.push_back({session->id(), session->device(), session->peer().pid});
    }
  }
  return clients;
}

std::optional<pid_t> Daemon::pid_of(engine::CmChannelId channel) const {
  return main_.cm_sessions().pid_of(channel);
}

void Daemon::serve_devices() {
  for (size_t i = 0; i < options_.fabric.devices.size(); ++i) {
    const engine::DeviceIndex device{static_cast<uint32_t>(i)};
    serve(directory_.device_socket(i), [this, device](UniqueFd socket, PeerCredentials peer) {
      on_connect(device, std::move(socket), peer);
    });
  }
  serve(directory_.cm_socket(), [this](UniqueFd socket, PeerCredentials peer) {
    on_connect_to_cm(std::move(socket), peer);
  });
}

void Daemon::serve(const std::string& path,
                   std::function<void(UniqueFd, PeerCredentials)> on_connect) {
  listeners_.push_back(std::make_unique<Listener>(main_.loop(), listen_at(path, SOCK_SEQPACKET),
                                                  std::move(on_connect)));
}

void Daemon::on_connect(engine::DeviceIndex device, UniqueFd socket, PeerCredentials peer) {
  auto session = std::make_unique<ClientSession>(
      ClientSession::Services{main_.engine_host(), main_.loop(), main_.memory(), main_.sessions(),
                              clock_},
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
    Json& names = json["devices"] = Json::array();
    for (const engine::DeviceConfig& device : options_.fabric.devices) names.push_back(device.name);
    return json;
  };
  const auto show = [this](const Json&) { return state_json(snapshot(), main_.sessions().list()); };
  const auto set = [this](const Json& request) {
    const auto port = text_of(request, "port");
    const auto removed = flag_of(request, "removed");
    if (port.has_value() == removed.has_value()) {
      throw ControlServer::Refusal(R"(either "port" or "removed" is to be given)");
    }
    const engine::DeviceIndex device = named_device(request);
    port ? set_port(device, *port) : remove_device(device, *removed);
    return Json::object();
  };
  const auto shutdown = [this](const Json&) {
    stop();
    return Json::object();
  };
  ControlServer::Commands commands = fault_commands(main_.engine_host(), device_names());
  commands.merge(time_commands(main_.engine_host(), main_.sessions(), clock_, time_is_held_));
  const auto idle = [this](const Json&) { return Json{{"idle", is_idle()}}; };
  const auto hang = [this](const Json& request) { return this->hang(request); };
  const auto listening = [this](const Json& request) {
    const auto port = number_of(request, "port", 1, UINT16_MAX);
    if (!port) throw ControlServer::Refusal(R"("port" is to say which)");
    return Json{{"listening", listens(snapshot(), static_cast<uint16_t>(*port))}};
  };
  const auto sync = [this](const Json&) { return sync_recording(); };
  const auto sanitizer = [this](const Json&) {
    if (options_.sanitizer.empty())
      throw ControlServer::Refusal("this NIC does not look for misuse; start it with --sanitize");
    return Json{{"directory", options_.sanitizer}};
  };
  commands.insert({{"version", taking({}, version)},
                   {"idle", taking({}, idle)},
                   {"show", taking({}, show)},
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
    programs_turn_ = std::make_unique<ProgramsTurn>(main_, ancestor(), [this] {
      frame_steps_.advance();
      if (frame_steps_.pending()) programs_turn_->begin(kAnswerTime);
    });
  }
  const auto step = [this](const Json& request, ControlServer::Done done) {
    taking({"frames"}, [&](const Json&) {
      frame_steps_.begin(request, std::move(done));
      return Json();
    })(request);
    if (programs_turn_ != nullptr) programs_turn_->begin(kStartTime);
  };
  return {{"step", step}};
}

std::optional<pid_t> Daemon::ancestor() const {
  return options_.run_pid > 0 ? std::optional(options_.run_pid) : std::nullopt;
}

bool Daemon::is_idle() {
  return !main_.sessions().pump_in_order() && main_.engine_host().engine().is_idle();
}

engine::DeviceIndex Daemon::named_device(const Json& request) const {
  const auto given = text_of(request, "device");
  if (!given) throw ControlServer::Refusal(R"("device" is to name the device)");
  const std::string& name = *given;
  const auto& devices = options_.fabric.devices;
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const auto& config) { return config.name == name; });
  if (found == devices.end()) {
    std::vector<std::string> names;
    for (const engine::DeviceConfig& config : devices) names.push_back(config.name);
    throw ControlServer::Refusal(
        fmt::format("there is no device '{}', but {}", name, fmt::join(names, ", ")));
  }
  return {static_cast<uint32_t>(found - devices.begin())};
}

void Daemon::set_port(engine::DeviceIndex index, const std::string& port) {
  if (port != "up" && port != "down") {
    throw ControlServer::Refusal(R"("port" is to be "up" or "down")");
  }
  const std::string& device = options_.fabric.devices[index.value].name;
  if (!has_device(index)) {
    throw ControlServer::Refusal(fmt::format("{} was removed, and has no port any more", device));
  }
  wanted_down_[index.value] = port == "down";
  update_port(index);
}

void Daemon::update_port(engine::DeviceIndex index) {
  if (!has_device(index)) return;
  const bool up = !wanted_down_[index.value] && (network_ == nullptr || network_->is_up(index));
  main_.engine_host().submit(engine::SetPort{index, up});
  const std::string& device = options_.fabric.devices[index.value].name;
  for (const SysfsFile& file : sysfs_tree_.port_state_files(
           device, index.value, main_.engine_host().device_facts(index).port)) {
    if (!directory_.replace_sysfs(file)) {
      spdlog::error("sysfs does not tell that the port of {} is {}: {}", device, up ? "up" : "down",
                    std::strerror(errno));
    }
  }
}

void Daemon::remove_device(engine::DeviceIndex index, bool removed) {
  if (!removed) {
    throw ControlServer::Refusal(
        R"("removed" can only be true: a device that was removed does not come back)");
  }
  hide_device(index);  // first, or somebody would open what is about to fail
  listeners_[index.value].reset();
  main_.engine_host().submit(engine::RemoveDevice{index});
}

// Not its listener, which may be calling this. A client that connects still gets a device, on which
// everything fails.
void Daemon::hide_device(engine::DeviceIndex index) {
  if (!removed_.insert(index).second) return;
  directory_.remove_device_socket(index.value);
  const std::string& device = options_.fabric.devices[index.value].name;
  for (const std::string& place : sysfs_tree_.places(device, index.value)) {
    if (!directory_.remove_sysfs(place)) {
      spdlog::error("sysfs still has {}: {}", place, std::strerror(errno));
    }
  }
}

void Daemon::make_turns() {
  Turns::Requests requests{.fd = main_.loop().fd(),
                           .serve = [this] { virtual_time_->serve(); },
                           .clients = [this] { return pids_of_clients(main_); }};
  turns_ = std::make_unique<Turns>(
      Turns::Options{.seed = options_.fabric.seed,
                     .sleeps_between_turns = options_.sleep_between_turns,
                     .tells_exits = options_.tell_exits,
                     .ancestor = ancestor()},
      listen_at(directory_.turns_socket(), SOCK_SEQPACKET), std::move(requests));
}

void Daemon::run_on_virtual_clock() {
  VirtualTime time(
      {.schedule = options_.schedule, .reports_hangs = options_.tell_stuck && ancestor()}, *turns_,
      main_, control_loop_, clock_, time_is_held_, [this] {
        flush_files();
        check_recording();
        return frame_steps_.advance();
      });
  virtual_time_ = &time;
  if (options_.tell_stuck && ancestor()) {
    time.on_stuck([this](uint32_t serial) { tell_stuck(serial); });
  }
  for (bool done = false; !done;) {
    try {
      time.run(stopping_);
      // The run may be over sooner; it can be asked about until we are told to stop.
      while (!stopping_) {
        pollfd ready[] = {{end_loop_.fd(), POLLIN, 0}, {control_loop_.fd(), POLLIN, 0}};
        poll(ready, 2, -1);
        end_loop_.wait(engine::Duration(0));
        control_loop_.wait(engine::Duration(0));
      }
      done = true;
    } catch (const std::bad_alloc&) {  // of no client's request; it is tried again
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
    throw ControlServer::Refusal("programs have done something since then");
  }
  flush_files();
  return hang_report(main_, virtual_time_ != nullptr ? virtual_time_->hangs_since() : clock_.now());
}

bool Daemon::run() {
  if (clock_.is_virtual()) {
    run_on_virtual_clock();
  } else {
    main_.run(stopping_, options_.busy_poll);
  }
  flush_files();
  finish_capture();
  check_recording();
  // Before the sockets close: a client that sees its connection end finds the directory gone.
  directory_.remove();
  return !recording_failed_ || !options_.stop_without_record;
}

void Daemon::end_programs() {
  std::set<pid_t> programs;
  for (const ClientSession* session : main_.sessions().list()) programs.insert(session->peer().pid);
  for (const pid_t pid : main_.cm_sessions().pids()) programs.insert(pid);
  if (!programs.empty())
    spdlog::warn("rocemu was killed, so its NIC has ended; its programs get SIGTERM: pid {}",
                 fmt::join(programs, ", "));
  for (const pid_t pid : programs) {
    if (pid <= 0) continue;  // the process is in a PID namespace outside ours
    kill(pid, SIGTERM);
    kill(pid, SIGCONT);
  }
}

Json Daemon::sync_recording() {
  if (main_.recording() == nullptr) {
    throw ControlServer::Refusal("this NIC does not record; start it with --record DIR");
  }
  flush_files();
  main_.recording()->sync();
  return Json{{"record", options_.record}};
}

void Daemon::flush_files() {
  if (main_.recording() != nullptr) main_.recording()->flush();
  if (capture_ != nullptr && !capture_->flush()) {
    spdlog::error("the capture stops here: {}", capture_->error());
  }
}

void Daemon::finish_capture() {
  if (capture_ == nullptr) return;
  if (!capture_->finish()) spdlog::error("the capture is not whole: {}", capture_->error());
  if (const uint64_t lost = capture_->lost_frames(); lost > 0) {
    spdlog::warn("{} frames are not in the capture {}: its reader was too slow", lost,
                 options_.capture);
  }
}

void Daemon::check_recording() {
  if (main_.recording() == nullptr || recording_failed_) return;
  const std::string error = main_.recording()->take_error();
  if (error.empty()) return;
  recording_failed_ = true;
  if (options_.stop_without_record) {
    spdlog::error("the run ends, since it can no longer be recorded: {}", error);
    stop();
  } else {
    spdlog::error("the recording ends here, the run goes on: {}", error);
  }
}

}  // namespace rocemu::daemon
