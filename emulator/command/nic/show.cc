// `rocemu show`: the state of a NIC as JSON or as tables.
#include <iostream>

#include "emulator/command/base/subcommand.h"
#include "emulator/command/daemons/choose_daemon.h"
#include "emulator/command/nic/show_text.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

po::options_description options_of_show() {
  po::options_description options("Options");
  options.add_options()("json", po::bool_switch(), "print JSON");
  add_dir_option(options);
  return options;
}

}  // namespace

std::string show_help() {
  return "usage: rocemu show [--json] [--dir DIR]\n"
         "\n"
         "Prints what the NIC holds: devices with their GIDs and port, queue pairs with states "
         "and\n"
         "packet sequence numbers, completion queues, shared receive queues, XRC domains, memory\n"
         "regions and windows, counters, and the processes that use it.\n"
         "\n" +
         choice_in_words() + "\n" + to_text(options_of_show()) +
         "\n"
         "Examples:\n"
         "  rocemu show\n"
         "  rocemu run -- sh -c './my_test & sleep 1; rocemu show; wait $!'\n"
         "  rocemu show --json | jq '.fabric.devices[0].qps'\n";
}

int show(const Arguments& arguments) {
  const po::variables_map values = parse_options("show", arguments, options_of_show());
  ControlClient client = choose_daemon(values, "show");
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
