// `rocemu wait`: waits until a device is ready, so that a script starts a client only after its
// server.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "emulator/command/base/error.h"
#include "emulator/command/base/print_json.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/daemons/choose_daemon.h"
#include "emulator/command/hangs/hang.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

using std::chrono::steady_clock;

/// The shortest and the longest time between two requests to the NIC. A request takes milliseconds
/// of real time, even in lockstep, where waiting takes none.
constexpr std::chrono::milliseconds kShortestPause{10}, kLongestPause{500};

/// Returns the time until the next request, an eighth of the time that was waited.
steady_clock::duration pause_after(steady_clock::duration waited) {
  return std::clamp<steady_clock::duration>(waited / 8, kShortestPause, kLongestPause);
}

po::options_description options_of_wait() {
  po::options_description options("Options");
  options.add_options()("listening", po::value<std::string>()->value_name("PORT"),
                        "wait until a program listens on this port, with rdma_listen(3) or TCP");
  options.add_options()("device-ready", po::bool_switch(),
                        "wait until the NIC is up and the port of DEVICE, or of every device, is "
                        "active");
  options.add_options()("timeout",
                        po::value<std::string>()->default_value("30s")->value_name("TIME"),
                        "fail after TIME, such as 90 (seconds), 1.5s or 2m; in lockstep this is "
                        "virtual time");
  options.add_options()("json", po::bool_switch(), "print the waiting time as JSON");
  add_dir_option(options);
  return options;
}

uint16_t port_of(const std::string& text) {
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, port);
  if (error != std::errc() || stop != end || port == 0)
    throw UsageError("wait: --listening '" + text + "' is not a port from 1 to 65535");
  return port;
}

/// Returns whether the device is ready. Throws Failure if there is no such device.
bool is_ready(const Json& state, const std::string& device) {
  bool found = device.empty();
  for (const Json& one : state.at("fabric").at("devices")) {
    if (!device.empty() && one.at("name") != device) continue;
    found = true;
    if (one.at("port_state") != "ACTIVE" || one.value("removed", false)) return false;
  }
  if (!found) throw Failure("there is no device '" + device + "'; rocemu show lists them");
  return true;
}

}  // namespace

std::string wait_help() {
  return R"(usage: rocemu wait --listening PORT [--timeout TIME] [--json] [--dir DIR]
       rocemu wait --device-ready [DEVICE] [--timeout TIME] [--json] [--dir DIR]

Waits until a server listens, or until a NIC is up. Scripts that start a server and a client
use it instead of a sleep.

)" + choice_in_words() +
         "\n" + to_text(options_of_wait()) + R"(
Exit status: 0 if the server or the NIC is ready, 1 after the timeout, 2 for wrong usage.

Examples:
  rocemu run -- sh -c './server & rocemu wait --listening 7471; ./client 127.0.0.2'
  rocemu wait --device-ready --timeout 1m
)";
}

int wait(const Arguments& arguments) {
  po::options_description all = options_of_wait();
  all.add_options()("device", po::value<std::string>());
  po::positional_options_description positional;
  positional.add("device", 1);
  const po::variables_map values = parse_options("wait", arguments, all, positional);
  const bool for_listener = values.count("listening") != 0;
  const bool for_device = values["device-ready"].as<bool>();
  if (for_listener == for_device) throw UsageError("wait: give --listening PORT or --device-ready");
  const std::string device = values.count("device") != 0 ? values["device"].as<std::string>() : "";
  if (for_listener && !device.empty())
    throw UsageError("wait: unexpected argument '" + device + "'");
  const uint16_t port = for_listener ? port_of(values["listening"].as<std::string>()) : uint16_t{0};
  const auto timeout = parse_time("wait", "--timeout", values["timeout"].as<std::string>());

  std::optional<ControlClient> client;
  std::string no_nic;
  const auto is_so = [&] {
    if (!client) {
      try {
        client.emplace(choose_daemon(values, "wait"));
        client->require_same_version();
      } catch (const Failure& failure) {
        if (for_listener) throw;
        no_nic = failure.what();
        client.reset();
        return false;
      }
    }
    if (for_listener) return client->request("listening", {{"port", port}}).at("listening") == true;
    return is_ready(client->request("show"), device);
  };
  const steady_clock::time_point begin = steady_clock::now();
  while (!is_so()) {
    const steady_clock::duration waited = steady_clock::now() - begin;
    if (waited >= timeout) {
      const std::string after = " after " + with_unit(values["timeout"].as<std::string>());
      if (for_listener) throw Failure("no program listens at port " + std::to_string(port) + after);
      if (!client) throw Failure(no_nic + " (still so" + after + ")");
      throw Failure((device.empty() ? "not all devices are" : device + " is not") + " ready" +
                    after);
    }
    std::this_thread::sleep_for(
        std::min<steady_clock::duration>(pause_after(waited), timeout - waited));
  }
  if (values["json"].as<bool>()) {
    const auto waited = std::chrono::duration<double>(steady_clock::now() - begin).count();
    print_json({{"waited_s", waited}});
  }
  return 0;
}

}  // namespace rocemu::command
