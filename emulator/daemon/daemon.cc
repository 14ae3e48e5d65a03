#include "emulator/daemon/daemon.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "emulator/abi/control.h"
#include "emulator/daemon/fault_commands.h"
#include "emulator/daemon/start_error.h"
#include "emulator/daemon/time_commands.h"
#include "emulator/scenario/scenario.h"

namespace rocemu::daemon {
namespace {

using namespace std::chrono_literals;

/// How often sockets are looked at while rings keep the daemon busy: a system call of 0.3 us.
constexpr engine::Duration kPollInterval = 10us;
/// With nothing to do for so long the daemon sleeps; then a doorbell costs an eventfd, about 4 us.
constexpr engine::Duration kSpinTime = 50us;
/// While others keep the daemon busy anyway, a session's ring is looked at for longer.
constexpr engine::Duration kSessionIdleTime = 1ms;
/// A deadline closer than this is waited for awake.
constexpr engine::Duration kShortestSleep = 20us;
/// A yield that took longer gave the processor to somebody who has work of his own.
constexpr engine::Duration kLongYield = 300us;
/// For so long after a long yield the daemon sleeps instead: who sleeps is let in soon when he is
/// woken, who yields waits for the slices of all others. Doubled each time that this was too short.
constexpr engine::Duration kShortestCrowd = 20ms;
constexpr engine::Duration kLongestCrowd = 1s;

std::unique_ptr<capture::PcapWriter> make_capture(const Options& options, const Clock& clock) {
  if (options.capture.empty()) return nullptr;
  auto capture = std::make_unique<capture::PcapWriter>(options.capture, clock.wall_start());
  if (!capture->is_open()) throw StartError(capture->error());
  return capture;
}

std::unique_ptr<journal::Recording> make_recording(const Options& options, const Clock& clock,
                                                   engine::HostMemory& memory) {
  if (options.record.empty()) return nullptr;
  if (mkdir(options.record.c_str(), 0777) != 0 && errno != EEXIST) {
    fail_start("cannot make the directory " + options.record, errno);
  }
  journal::Header header;
  header.fabric = options.fabric;
  header.clock = options.lockstep ? "lockstep" : clock.is_virtual() ? "virtual" : "real";
  header.wall_start_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock.wall_start().time_since_epoch())
          .count();
  auto recording = std::make_unique<journal::Recording>(options.record, header, memory);
  if (const std::string error = recording->take_error(); !error.empty()) throw StartError(error);
  return recording;
}

std::string text_in(const Json& request, const char* key) {
  const auto found = request.find(key);
  return found != request.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Opens the devices' sockets, and tells the engine of the interfaces they are on.
std::vector<UdpSockets> attach_to_udp(Options& options) {
  std::vector<UdpSockets> sockets;
  if (options.udp.empty()) return sockets;
  const std::vector<NetworkInterface> interfaces = list_network_interfaces();
  auto& devices = options.fabric.devices;
  attach_to_interfaces(devices, options.udp, interfaces);
  for (size_t i = 0; i < devices.size(); ++i) {
    sockets.push_back(open_udp_sockets(
        devices[i], *find_interface(interfaces, options.udp[i].interface), options.strict_icrc));
    devices[i].source_ports = sockets.back().source_ports;
  }
  return sockets;
}

/// Linux 6.12 and later let in who asks for short slices before those who are content with long
/// ones. Elsewhere nothing changes.
void ask_for_short_slices() {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes{};
  constexpr uint64_t kSliceNs = 100'000;
  attributes.size = sizeof attributes;
  attributes.policy = SCHED_OTHER;
  attributes.nice = getpriority(PRIO_PROCESS, 0);
  attributes.runtime = kSliceNs;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

Daemon::Daemon(Options options)
    : options_(std::move(options)),
      sockets_(attach_to_udp(options_)),
      clock_(options_.clock),
      capture_(make_capture(options_, clock_)),
      directory_(options_.dir, options_.fabric.devices.size()),
      sessions_(clock_),
      client_memory_(memory_, sessions_),
      recording_(make_recording(options_, clock_, client_memory_)),
      nic_(options_.fabric, client_memory_, sessions_, cm_sessions_, clock_, capture_.get(),
           recording_.get()),
      wanted_down_(options_.fabric.devices.size()) {
  if (directory_.was_stale()) {
    spdlog::warn("{}: removed what an earlier daemon had left there", directory_.path());
  }
  std::vector<SysfsDevice> devices;
  for (size_t i = 0; i < options_.fabric.devices.size(); ++i) {
    devices.push_back(device({static_cast<uint32_t>(i)}));
  }
  directory_.write_sysfs(sysfs_files(devices));
  if (!sockets_.empty()) {
    network_ = std::make_unique<UdpNetwork>(
        loop_, options_.fabric.devices, std::move(sockets_), [this] { sessions_.take_receives(); },
        [this](const engine::ReceiveFrame& frame) { nic_.receive(frame); },
        [this](engine::DeviceIndex index, bool) { update_port(index); });
    nic_.connect(*network_);
    for (uint32_t i = 0; i < device_count(); ++i) {
      if (!network_->is_up({i})) update_port({i});
    }
  }
  nic_.on_device_changed([this](engine::DeviceIndex device) { write_sysfs_again(device); });
  load_scenario();
  serve_devices();
  control_ = std::make_unique<ControlServer>(
      control_loop_, listen_at(directory_.control_socket(), SOCK_STREAM), control_commands());
  if (!options_.lockstep) {
    control_watch_ = loop_.watch(control_loop_.fd(), EPOLLIN,
                                 [this](uint32_t) { control_loop_.wait(engine::Duration(0)); });
    if (!control_watch_) fail_start("cannot watch the control socket", errno);
  }
  NldevSource& source = *this;
  netlink_ = std::make_unique<NetlinkServer>(
      loop_, listen_at(directory_.netlink_socket(), SOCK_SEQPACKET), source);
}

std::vector<std::string> Daemon::device_names() const {
  std::vector<std::string> names;
  for (const engine::DeviceConfig& device : options_.fabric.devices) names.push_back(device.name);
  return names;
}

void Daemon::load_scenario() {
  if (options_.scenario.empty()) return;
  const scenario::Scenario scenario = scenario::load_scenario(options_.scenario);
  scenario::check_devices(*scenario.rules, device_names(), options_.scenario);
  nic_.submit(engine::AddRules{scenario.rules});
}

void Daemon::write_sysfs_again(engine::DeviceIndex index) {
  if (!nic_.has_device(index)) return hide_device(index);
  engine::DeviceConfig& config = options_.fabric.devices[index.value];
  config.addresses = nic_.addresses(index);
  for (const SysfsFile& file : sysfs_files({device(index)})) {
    if (!directory_.replace_sysfs(file)) {
      spdlog::error("sysfs does not tell how {} is now: {}", config.name, std::strerror(errno));
    }
  }
}

SysfsDevice Daemon::device(engine::DeviceIndex index) {
  const engine::DeviceConfig& config = options_.fabric.devices[index.value];
  const Nic::DeviceFacts facts = nic_.device_facts(index);
  return {config.name, config.addresses, facts.device, facts.port};
}

engine::FabricSnapshot Daemon::snapshot() {
  engine::FabricSnapshot snapshot = nic_.snapshot();
  if (network_ != nullptr) network_->append_counters(snapshot);
  return snapshot;
}

std::vector<NldevClient> Daemon::clients() const {
  std::vector<NldevClient> clients;
  for (const ClientSession* session : sessions_.list()) {
    if (session->is_attached()) {
      clients.push_back({session->id(), session->device(), session->peer().pid});
    }
  }
  return clients;
}

std::optional<pid_t> Daemon::pid_of(engine::CmChannelId channel) const {
  return cm_sessions_.pid_of(channel);
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
  acceptors_.push_back(std::make_unique<Acceptor>(listen_at(path, SOCK_SEQPACKET)));
  Acceptor& acceptor = *acceptors_.back();
  watches_.push_back(
      loop_.watch(acceptor.fd(), EPOLLIN, [&acceptor, connected = std::move(on_connect)](uint32_t) {
        std::vector<Acceptor::Accepted> arrived;
        while (auto accepted = acceptor.accept()) arrived.push_back(std::move(*accepted));
        // Those that came meanwhile, in an order that they do not race for.
        std::ranges::stable_sort(arrived, {}, [](const auto& one) { return one.peer.pid; });
        for (auto& [socket, peer] : arrived) connected(std::move(socket), peer);
      }));
  if (!watches_.back()) fail_start("cannot watch a device's socket", errno);
}

void Daemon::on_connect(engine::DeviceIndex device, UniqueFd socket, PeerCredentials peer) {
  auto session = std::make_unique<ClientSession>(
      ClientSession::Services{nic_, loop_, memory_, sessions_, clock_}, sessions_.next_id(), device,
      std::move(socket), peer);
  spdlog::debug("{} opens {}", session->description(), options_.fabric.devices[device.value].name);
  sessions_.add(std::move(session));
}

void Daemon::on_connect_to_cm(UniqueFd socket, PeerCredentials peer) {
  auto session = std::make_unique<CmSession>(CmSession::Services{nic_, loop_, cm_sessions_},
                                             cm_sessions_.next_channel(), std::move(socket), peer);
  spdlog::debug("pid {} opens event channel {}", peer.pid, session->channel().value);
  cm_sessions_.add(std::move(session));
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
  const auto show = [this](const Json&) { return state_json(snapshot(), sessions_.list()); };
  const auto set = [this](const Json& request) {
    request.contains("removed") ? remove_device(request) : set_port(request);
    return Json::object();
  };
  const auto shutdown = [this](const Json&) {
    stop();
    return Json::object();
  };
  ControlServer::Commands commands = fault_commands(nic_, device_names());
  commands.merge(time_commands(nic_, sessions_, clock_, time_is_held_));
  commands.insert({{"version", version},
                   {"show", show},
                   {"set", set},
                   {"sync", [this](const Json&) { return sync_recording(); }},
                   {"shutdown", shutdown}});
  return commands;
}

engine::DeviceIndex Daemon::named_device(const Json& request) const {
  const std::string name = text_in(request, "device");
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

void Daemon::set_port(const Json& request) {
  const std::string port = text_in(request, "port");
  if (port != "up" && port != "down") {
    throw ControlServer::Refusal(R"("port" is to be "up" or "down")");
  }
  const engine::DeviceIndex index = named_device(request);
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
  nic_.submit(engine::SetPort{index, up});
  const std::string& device = options_.fabric.devices[index.value].name;
  for (const SysfsFile& file : port_state_files(device, nic_.device_facts(index).port)) {
    if (!directory_.replace_sysfs(file)) {
      spdlog::error("sysfs does not tell that the port of {} is {}: {}", device, up ? "up" : "down",
                    std::strerror(errno));
    }
  }
}

void Daemon::remove_device(const Json& request) {
  const engine::DeviceIndex index = named_device(request);
  hide_device(index);  // first, or somebody would open what is about to fail
  acceptors_[index.value].reset();
  watches_[index.value].reset();
  nic_.submit(engine::RemoveDevice{index});
}

// Not its acceptor, which may be what is at work. Whoever connects still has a device on which all
// fails.
void Daemon::hide_device(engine::DeviceIndex index) {
  if (!removed_.insert(index).second) return;
  directory_.remove_device_socket(index.value);
  const std::string& device = options_.fabric.devices[index.value].name;
  for (const std::string& directory : sysfs_directories(device, index.value)) {
    if (!directory_.remove_sysfs(directory)) {
      spdlog::error("sysfs still has {}: {}", directory, std::strerror(errno));
    }
  }
}

bool Daemon::run() {
  ask_for_short_slices();
  if (clock_.is_virtual()) {
    run_on_virtual_clock();
  } else {
    run_on_real_clock();
  }
  flush_files();
  check_recording();
  // Before the sockets close: who sees the end of its connection finds the directory gone.
  directory_.remove();
  return !recording_failed_ || !options_.stop_without_record;
}

void Daemon::run_on_real_clock() {
  engine::Instant last_work = clock_.now();
  engine::Instant last_poll{};
  engine::Instant crowded_until{};
  engine::Duration crowd{};
  while (!stopping_) {
    // What came is older than any timer that has run out meanwhile. While the wire is busy a NIC
    // makes no frames.
    bool worked = network_ != nullptr && network_->receive(clock_.now());
    if (network_ == nullptr || !network_->is_congested()) {
      worked |= sessions_.pump();
      worked |= nic_.tick_if_due();
    }
    if (network_ != nullptr) worked |= network_->flush(clock_.now());
    if (sessions_.reap(nic_, memory_)) worked = somebody_left_ = true;
    if (cm_sessions_.reap(nic_)) worked = somebody_left_ = true;
    const engine::Instant now = clock_.now();
    if (now - last_poll >= kPollInterval) {
      worked |= poll(engine::Duration(0));
      sessions_.let_sleep(now, kSessionIdleTime);
      check_recording();
      last_poll = now;
    }
    if (worked) {
      last_work = now;
    } else if (now - last_work < kSpinTime && now >= crowded_until) {
      sched_yield();
      const engine::Instant after = clock_.now();
      if (after - now > kLongYield) {
        crowd = std::clamp(2 * crowd, kShortestCrowd, kLongestCrowd);
        crowded_until = after + crowd;
      } else {
        crowd = engine::Duration(0);
      }
    } else {
      sleep();
      last_work = last_poll = clock_.now();
    }
  }
}

void Daemon::sleep() {
  const engine::Instant now = clock_.now();
  if (network_ != nullptr && network_->is_congested()) {
    poll(std::nullopt);  // for room to send
    return;
  }
  const std::optional<engine::Instant> deadline = nic_.next_deadline();
  if (deadline && *deadline - now < kShortestSleep) {
    sched_yield();
    return;
  }
  sessions_.let_sleep(now, engine::Duration(0));
  if (sessions_.any_awake()) return;  // a doorbell came just now
  flush_files();
  check_recording();
  if (stopping_) return;
  if (deadline) {
    poll(std::max(*deadline - clock_.now(), engine::Duration(0)));
  } else {
    // Of what they had nothing is still to end, such as the timewait of connections: the system
    // gets back what it all took.
    if (std::exchange(somebody_left_, false)) malloc_trim(0);
    poll(std::nullopt);
  }
}

Json Daemon::sync_recording() {
  if (recording_ == nullptr) {
    throw ControlServer::Refusal("this NIC does not record; start it with --record DIR");
  }
  flush_files();
  recording_->sync();
  return Json{{"record", options_.record}};
}

void Daemon::flush_files() {
  if (recording_ != nullptr) recording_->flush();
  if (capture_ != nullptr && !capture_->flush()) {
    spdlog::error("the capture stops here: {}", capture_->error());
  }
}

void Daemon::check_recording() {
  if (recording_ == nullptr || recording_failed_) return;
  const std::string error = recording_->take_error();
  if (error.empty()) return;
  recording_failed_ = true;
  if (options_.stop_without_record) {
    spdlog::error("the run ends, since it can no longer be recorded: {}", error);
    stop();
  } else {
    spdlog::error("the recording ends here, the run goes on: {}", error);
  }
}

bool Daemon::poll(std::optional<engine::Duration> timeout) {
  return loop_.wait(timeout) > 0;
}

}  // namespace rocemu::daemon
