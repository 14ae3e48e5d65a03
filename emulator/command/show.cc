// `rocemu show`: which daemon to ask, and its state as JSON or as tables.
#include <cstdlib>
#include <iostream>
#include <optional>

#include "emulator/abi/runtime_dir.h"
#include "emulator/command/control_client.h"
#include "emulator/command/error.h"
#include "emulator/command/runtime_dir.h"
#include "emulator/command/show_text.h"
#include "emulator/command/subcommand.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

po::options_description options_of_show() {
  po::options_description options("Options");
  options.add_options()("json", po::bool_switch(), "print JSON")(
      "dir", po::value<std::string>()->value_name("DIR"),
      "the runtime directory of the daemon to ask");
  return options;
}

ControlClient require_daemon(const std::string& dir, const std::string& named_by) {
  if (std::optional<ControlClient> client = ControlClient::connect(dir)) return std::move(*client);
  throw Failure("no daemon runs in " + dir + " (" + named_by + ")");
}

ControlClient find_daemon(const po::variables_map& values) {
  if (values.count("dir") != 0)
    return require_daemon(values["dir"].as<std::string>(), "given by --dir");
  const char* const variable = std::getenv(abi::kDirVariable);
  if (variable != nullptr && variable[0] != '\0')
    return require_daemon(variable, std::string("given by ") + abi::kDirVariable);
  if (const std::string distrust = distrust_of_base(base_dir()); !distrust.empty())
    throw Failure("the runtime directory cannot be used: " + distrust);
  if (std::optional<ControlClient> shared = ControlClient::connect(shared_dir()))
    return std::move(*shared);

  std::vector<ControlClient> running;
  for (const std::string& dir : private_dirs())
    if (std::optional<ControlClient> client = ControlClient::connect(dir))
      running.push_back(std::move(*client));
  if (running.empty())
    throw Failure("no NIC is running; start one with `rocemu up` or `rocemu run -- COMMAND`");
  if (running.size() == 1) return std::move(running[0]);
  std::string list;
  for (const ControlClient& client : running) list += "\n  rocemu show --dir " + client.dir();
  throw Failure("several NICs are running; say which one:" + list);
}

}  // namespace

std::string show_help() {
  return "usage: rocemu show [--json] [--dir DIR]\n"
         "\n"
         "Prints what the NIC holds: devices with their GIDs and port, queue pairs with states "
         "and\n"
         "packet sequence numbers, completion queues, memory regions, counters, and the processes\n"
         "that use it.\n"
         "\n"
         "It asks the daemon in DIR; else the one of the `rocemu run` it is called in; else the\n"
         "shared one; else the only one that this user runs.\n"
         "\n" +
         to_text(options_of_show()) +
         "\n"
         "Examples:\n"
         "  rocemu show\n"
         "  rocemu run -- sh -c './my_test & sleep 1; rocemu show; wait'\n"
         "  rocemu show --json | jq '.fabric.devices[0].qps'\n";
}

int show(const Arguments& arguments) {
  const po::variables_map values = parse_options("show", arguments, options_of_show());
  ControlClient client = find_daemon(values);
  client.require_same_version();
  Json state{{"dir", client.dir()}, {"pid", client.daemon_pid()}};
  state.update(client.request("show"));
  state.erase("ok");
  if (values["json"].as<bool>())
    std::cout << state.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  else
    std::cout << show_text(state);
  return 0;
}

}  // namespace rocemu::command
