// `rocemu up` and `rocemu down`: start and end the shared NIC, which programs in several terminals
// can use.
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <iostream>
#include <optional>

#include "emulator/command/base/error.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/daemons/control_client.h"
#include "emulator/command/daemons/daemon_launch.h"
#include "emulator/command/daemons/default_runtime_dir.h"
#include "emulator/command/daemons/process_exit.h"
#include "emulator/command/nic/fabric_options.h"
#include "emulator/command/recordings/recorded_capture.h"
#include "emulator/command/sanitizer/sanitizer_options.h"
#include "emulator/command/sanitizer/shared_sanitizer.h"
#include "emulator/options/describe.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

/// Timeouts of `rocemu down`: for the daemon's reply, then for its exit.
constexpr std::chrono::seconds kAnswerTimeout{30};
constexpr std::chrono::seconds kStopTimeout{60};

std::string log_path() {
  return shared_dir() + ".log";
}

/// Opens and locks BASE. Tries again if BASE was removed before the lock was taken.
OpenBase lock_base(const std::string& base) {
  for (;;) {
    OpenBase open_base(base);
    open_base.lock();
    if (!open_base.was_removed()) return open_base;
  }
}

/// Returns the names of the devices: "rocemu0, rocemu1".
std::string device_names(const Json& version_reply) {
  std::string names;
  const auto devices = version_reply.find("devices");
  if (devices == version_reply.end() || !devices->is_array()) return "no devices";
  for (const Json& device : *devices) {
    const Json& name = device.is_object() && device.contains("name") ? device["name"] : device;
    names +=
        (names.empty() ? "" : ", ") + (name.is_string() ? name.get<std::string>() : name.dump());
  }
  return names;
}

/// Returns the directory into which the NIC records; empty if it does not record.
std::string recording_of(ControlClient& client) {
  try {
    const Json answer = client.request("sync");
    const auto directory = answer.find("record");
    return directory != answer.end() && directory->is_string() ? directory->get<std::string>() : "";
  } catch (const Failure&) {
    return "";  // the NIC does not record
  }
}

po::options_description options_of_down() {
  po::options_description options("Options");
  options.add_options()("json", po::bool_switch(), "print JSON");
  return options;
}

/// Prints `json` if `as_json` is true, else `text`.
void say(std::ostream& out, bool as_json, const std::string& text, const Json& json) {
  if (as_json) {
    out << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    out << text << "\n";
  }
}

std::string help_of_up(bool all) {
  return R"(usage: rocemu up [options]

Starts a shared NIC in the background. Every later `rocemu run` of this user joins it, so that
programs in several terminals reach each other. `rocemu down` stops it.

If a shared NIC is already up, `rocemu up` says so and succeeds. With any option except --json,
it fails instead, because the running NIC keeps its own options.

)" + options::help_of(options::Command::kUp, all) +
         R"(
Examples:
  rocemu up --capture /tmp/trace.pcap
  rocemu run -- ibv_rc_pingpong -g 0              in one terminal
  rocemu run -- ibv_rc_pingpong -g 0 127.0.0.1    in another
  rocemu show
  rocemu down
)";
}

}  // namespace

std::string up_help() {
  return help_of_up(false);
}

std::string up_help_all() {
  return help_of_up(true);
}

int up(const Arguments& arguments) {
  const po::variables_map values =
      parse_options("up", arguments, options::options_of(options::Command::kUp));
  const bool as_json = values["json"].as<bool>();
  DaemonStart start{.arguments = daemon_arguments(options::Command::kUp, values),
                    .scenario = read_scenarios(values)};
  const std::optional<SanitizerOptions> sanitizer = read_sanitizer_options("up", values);
  const std::string base = base_dir();
  const std::string dir = shared_dir();
  std::optional<capture::CaptureFile> capture;
  for (int attempt = 1;; ++attempt) {
    const OpenBase open_base = lock_base(base);
    if (std::optional<ControlClient> client = ControlClient::connect(dir)) {
      client->require_same_version();
      const std::string already =
          "a shared NIC is up already (pid " + std::to_string(client->daemon_pid()) + ")";
      if (!start.arguments.empty() || sanitizer)
        throw Failure(already + " and keeps its options; end it first: rocemu down");
      Json json = client->request("version");
      json["already"] = true;
      say(std::cout, as_json, already, json);
      return 0;
    }
    remove_remains(dir);  // left by a daemon that was killed
    try {
      if (!capture) capture = open_capture(values);
      if (capture) start.capture_fd = capture->fd.get();
      if (sanitizer && attempt == 1)
        start.arguments.insert(start.arguments.end(),
                               {"--sanitizer", make_shared_sanitizer(*sanitizer)});
      start_background_daemon(dir, start, log_path());
      break;
    } catch (const Error& error) {
      if (open_base.made_fail(dir, error.what(), attempt)) continue;
      unlink(log_path().c_str());
      remove_shared_sanitizer();
      remove_empty_base(base);
      throw;
    }
  }
  std::optional<ControlClient> client = ControlClient::connect(dir);
  if (!client) throw Failure("the shared NIC ended immediately; see " + log_path());
  std::ostream& out = capture && capture->descriptor == STDOUT_FILENO ? std::cerr : std::cout;
  Json json = client->request("version");
  const std::string text =
      "up: " + device_names(json) + " (pid " + std::to_string(client->daemon_pid()) + ", log " +
      log_path() + ")\n" +
      "Programs started with `rocemu run -- COMMAND` use it. `rocemu show` prints its state,\n"
      "`rocemu down` ends it." +
      (sanitizer ? " Misuse of verbs is reported by `rocemu show --misuses`, and by\n"
                   "`rocemu down`."
                 : "");
  json.update({{"already", false}, {"dir", dir}, {"log", log_path()}});
  say(out, as_json, text, json);
  return 0;
}

std::string down_help() {
  return R"(usage: rocemu down [--json]

Stops the NIC that `rocemu up` started, and waits until it has ended. Programs that still use
it see their device fail. If no shared NIC is up, `rocemu down` says so and succeeds.

After `rocemu up --sanitize` it prints the reports on standard error, and exits with status 1
if one of them is an error.

)" + to_text(options_of_down());
}

int down(const Arguments& arguments) {
  const bool as_json = parse_options("down", arguments, options_of_down())["json"].as<bool>();
  const std::string base = base_dir();
  const std::string dir = shared_dir();
  require_trust(base);
  bool has_misuse = false;
  const auto remove_all = [&] {
    has_misuse = finish_shared_sanitizer();
    unlink(log_path().c_str());
    const bool remained = remove_remains(dir);
    remove_empty_base(base);
    return remained;
  };
  if (access(base.c_str(), F_OK) != 0) {
    say(std::cout, as_json, "no shared NIC is up", {{"was_up", false}});
    return 0;
  }
  const OpenBase open_base = lock_base(base);
  std::optional<ControlClient> client = ControlClient::connect(dir, kAnswerTimeout);
  if (!client) {
    say(std::cout, as_json,
        remove_all() ? "no shared NIC is up; removed the files of a killed one"
                     : "no shared NIC is up",
        {{"was_up", false}});
    return has_misuse ? kExitFailure : 0;
  }
  const pid_t pid = client->daemon_pid();
  if (pid <= 0) throw Failure("cannot determine which process listens in " + dir);
  const std::string recording = recording_of(*client);
  bool asked = true;
  try {
    client->request("shutdown");
  } catch (const Failure&) {
    asked = false;  // the daemon has another version, or is stuck
    kill(pid, SIGTERM);
  }
  const bool ended = wait_until_gone(pid, kStopTimeout);
  if (!ended) {
    kill(pid, SIGKILL);
    wait_until_gone(pid, kStopTimeout);
  }
  remove_all();
  if (!ended)
    throw Failure("the shared NIC (pid " + std::to_string(pid) + ") did not end and was killed");
  const bool complete = recording.empty() || finish_recording(recording);
  say(std::cout, as_json, asked ? "down" : "down (it did not answer and was terminated)",
      {{"was_up", true}, {"answered", asked}, {"recording", recording}});
  return complete && !has_misuse ? 0 : kExitFailure;
}

}  // namespace rocemu::command
