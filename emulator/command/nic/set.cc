// `rocemu set`: changes a running NIC.
#include <algorithm>
#include <array>
#include <iostream>

#include "emulator/command/base/error.h"
#include "emulator/command/base/print_json.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/daemons/choose_daemon.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

po::options_description options_of_set() {
  po::options_description options("Options");
  options.add_options()("json", po::bool_switch(), "print the result as JSON");
  add_dir_option(options);
  return options;
}

struct Change {
  std::string device;
  std::string port;  // "up" or "down"; empty: the device is removed
};

Change change_of(const Arguments& words) {
  const std::string usage = "; for example: rocemu set rocemu0 port down";
  if (words.empty()) throw UsageError("set: no device is named" + usage);
  if (words.size() == 1)
    throw UsageError("set: " + words[0] + " must be followed by 'port' or 'removed'" + usage);
  const auto end_at = [&](size_t count) {
    if (words.size() > count)
      throw UsageError("set: unexpected argument '" + words[count] + "'" + usage);
  };
  if (words[1] == "removed") {
    end_at(2);
    return {words[0], ""};
  }
  if (words[1] != "port")
    throw UsageError("set: a device has no '" + words[1] +
                     "' to set; use 'removed', or 'port' with up or down" + usage);
  constexpr std::array<std::string_view, 2> kStates = {"up", "down"};
  if (words.size() == 2) throw UsageError("set: port needs a state, up or down" + usage);
  if (std::ranges::find(kStates, words[2]) == kStates.end())
    throw UsageError("set: a port can be up or down, not '" + words[2] + "'" + usage);
  end_at(3);
  return {words[0], words[2]};
}

}  // namespace

std::string set_help() {
  return R"(usage: rocemu set DEVICE port up|down [--json] [--dir DIR]
       rocemu set DEVICE removed [--json] [--dir DIR]

port up|down plugs in or pulls out the cable of a device's port. A port that is down sends and
receives nothing: programs get IBV_EVENT_PORT_ERR, and their requests fail with
IBV_WC_RETRY_EXC_ERR unless the port is up again in time.

removed removes the device for good. Its programs get IBV_EVENT_DEVICE_FATAL and
RDMA_CM_EVENT_DEVICE_REMOVAL, their verbs fail with EIO, and their posted work requests never
complete. Peers see a dead NIC, and `ibv_devices` no longer lists the device.

When this command returns, the change is in effect.

)" + choice_in_words() +
         "\n" + to_text(options_of_set()) + R"(
Examples:
  rocemu set rocemu0 port down
  rocemu set rocemu1 removed
  rocemu run -- sh -c './my_test & sleep 1; rocemu set rocemu1 port down; wait $!'
)";
}

int set(const Arguments& arguments) {
  po::options_description all = options_of_set();
  all.add_options()("words", po::value<Arguments>());
  po::positional_options_description positional;
  positional.add("words", -1);
  const po::variables_map values = parse_options("set", arguments, all, positional);
  const Change change =
      change_of(values.count("words") != 0 ? values["words"].as<Arguments>() : Arguments());
  const bool removes = change.port.empty();
  const std::string words = removes ? " removed" : " port " + change.port;
  ControlClient client = choose_daemon(values, "set " + change.device + words);
  client.require_same_version();
  Json request = {{"device", change.device}};
  if (removes) {
    request["removed"] = true;
  } else {
    request["port"] = change.port;
  }
  client.request("set", request);
  if (values["json"].as<bool>()) print_json(request);
  return 0;
}

}  // namespace rocemu::command
