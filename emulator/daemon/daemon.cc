#include "emulator/daemon/daemon.h"

#include <sched.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "emulator/abi/control.h"
#include "emulator/daemon/start_error.h"

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

std::unique_ptr<capture::PcapWriter> make_capture(const Options& options, const Clock& clock) {
  if (options.capture.empty()) return nullptr;
  auto capture = std::make_unique<capture::PcapWriter>(options.capture, clock.wall_start());
  if (!capture->is_open()) throw StartError(capture->error());
  return capture;
}

}  // namespace

Daemon::Daemon(Options options)
    : options_(std::move(options)),
      capture_(make_capture(options_, clock_)),
      directory_(options_.dir, options_.fabric.devices.size()),
      sessions_(clock_),
      client_memory_(memory_, sessions_),
      nic_(options_.fabric, client_memory_, sessions_, clock_, capture_.get()) {
  if (directory_.was_stale()) {
    spdlog::warn("{}: removed what an earlier daemon had left there", directory_.path());
  }
  std::vector<SysfsDevice> devices;
  for (size_t i = 0; i < options_.fabric.devices.size(); ++i) {
    const engine::DeviceConfig& config = options_.fabric.devices[i];
    const Nic::DeviceFacts facts = nic_.device_facts({static_cast<uint32_t>(i)});
    devices.push_back({config.name, config.addresses, facts.device, facts.port});
  }
  directory_.write_sysfs(sysfs_files(devices));
  serve_devices();
  control_ = std::make_unique<ControlServer>(
      loop_, listen_at(directory_.control_socket(), SOCK_STREAM), control_commands());
}

void Daemon::serve_devices() {
  for (size_t i = 0; i < options_.fabric.devices.size(); ++i) {
    acceptors_.push_back(
        std::make_unique<Acceptor>(listen_at(directory_.device_socket(i), SOCK_SEQPACKET)));
    Acceptor& acceptor = *acceptors_.back();
    const engine::DeviceIndex device{static_cast<uint32_t>(i)};
    watches_.push_back(loop_.watch(acceptor.fd(), EPOLLIN, [this, &acceptor, device](uint32_t) {
      on_connect(acceptor, device);
    }));
    if (!watches_.back()) fail_start("cannot watch a device's socket", errno);
  }
}

void Daemon::on_connect(Acceptor& acceptor, engine::DeviceIndex device) {
  std::optional<UniqueFd> socket = acceptor.accept();
  if (!socket) return;
  const std::optional<PeerCredentials> peer = peer_credentials(socket->get());
  if (!peer || peer->uid != geteuid()) {
    spdlog::warn("a process of user {} is refused", peer ? peer->uid : static_cast<uid_t>(-1));
    return;
  }
  auto session =
      std::make_unique<ClientSession>(ClientSession::Services{nic_, loop_, memory_, sessions_},
                                      sessions_.next_id(), device, std::move(*socket), *peer);
  spdlog::debug("{} opens {}", session->description(), options_.fabric.devices[device.value].name);
  sessions_.add(std::move(session));
}

ControlServer::Commands Daemon::control_commands() {
  const auto version = [this] {
    Json json;
    json["version"] = ROCEMU_VERSION;
    json["abi"] = abi::kVersion;
    json["pid"] = getpid();
    Json& names = json["devices"] = Json::array();
    for (const engine::DeviceConfig& device : options_.fabric.devices) names.push_back(device.name);
    return json;
  };
  const auto show = [this] { return state_json(nic_.snapshot(), sessions_.list()); };
  const auto shutdown = [this] {
    stop();
    return Json::object();
  };
  return {{"version", version}, {"show", show}, {"shutdown", shutdown}};
}

void Daemon::run() {
  engine::Instant last_work = clock_.now();
  engine::Instant last_poll{};
  while (!stopping_) {
    bool worked = sessions_.pump();
    worked |= nic_.tick_if_due();
    worked |= sessions_.reap(nic_, memory_);
    const engine::Instant now = clock_.now();
    if (now - last_poll >= kPollInterval) {
      worked |= poll(engine::Duration(0));
      sessions_.let_sleep(now, kSessionIdleTime);
      last_poll = now;
    }
    if (worked) {
      last_work = now;
    } else if (now - last_work < kSpinTime) {
      sched_yield();
    } else {
      sleep();
      last_work = last_poll = clock_.now();
    }
  }
  flush_capture();
  // Before the sockets close: who sees the end of its connection finds the directory gone.
  directory_.remove();
}

void Daemon::sleep() {
  const engine::Instant now = clock_.now();
  const std::optional<engine::Instant> deadline = nic_.next_deadline();
  if (deadline && *deadline - now < kShortestSleep) {
    sched_yield();
    return;
  }
  sessions_.let_sleep(now, engine::Duration(0));
  if (sessions_.any_awake()) return;  // a doorbell came just now
  flush_capture();
  if (deadline) {
    poll(std::max(*deadline - clock_.now(), engine::Duration(0)));
  } else {
    poll(std::nullopt);
  }
}

void Daemon::flush_capture() {
  if (capture_ != nullptr && !capture_->flush()) {
    spdlog::error("the capture stops here: {}", capture_->error());
  }
}

bool Daemon::poll(std::optional<engine::Duration> timeout) {
  return loop_.wait(timeout) > 0;
}

}  // namespace rocemu::daemon
