// `rocemu show`: prints the state of a NIC as JSON or as tables.
#include <iostream>
#include <string>
#include <vector>

#include "emulator/command/base/subcommand.h"
#include "emulator/command/daemons/choose_daemon.h"
#include "emulator/command/nic/show_network.h"
#include "emulator/command/nic/show_text.h"
#include "emulator/command/sanitizer/finding_files.h"
#include "emulator/command/sanitizer/finding_text.h"
#include "emulator/command/sanitizer/sanitizer_reports.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

po::options_description options_of_show() {
  po::options_description options("Options");
  options.add_options()("json", po::bool_switch(), "print JSON");
  options.add_options()("fabric", po::bool_switch(),
                        "print a row for each port of the simulated network (rocemu run "
                        "--fabric): use of its link, current and longest queue, ECN marks, drops "
                        "and received pauses");
  options.add_options()("misuses", po::bool_switch(),
                        "print the wrong uses of verbs that --sanitize has found so far "
                        "(docs/sanitizer.md)");
  add_dir_option(options);
  return options;
}

void print_misuses(ControlClient& client, bool as_json) {
  const auto directory = client.request("sanitizer").at("directory").get<std::string>();
  const std::vector<Misuse> findings = SanitizerReports(directory).read(Waits::kOfEnded);
  if (as_json) {
    std::cout << to_text(findings, ReportFormat::kJson, "");
    return;
  }
  for (const Misuse& one : findings) std::cout << in_words(one);
  std::cout << (findings.empty() ? "no misuse was found" : summary_of(findings)) << "\n";
}

}  // namespace

std::string show_help() {
  return R"(usage: rocemu show [--fabric | --misuses] [--json] [--dir DIR]

Prints the state of a running NIC: devices with GIDs and ports, queue pairs with states and
packet sequence numbers, completion queues, shared receive queues, XRC domains, memory regions
and windows, counters, and the processes that use it.

)" + choice_in_words() +
         "\n" + to_text(options_of_show()) + R"(
Examples:
  rocemu show
  rocemu run -- sh -c './my_test & sleep 1; rocemu show; wait $!'
  rocemu show --misuses
  rocemu run --lockstep --fabric star-16 -- sh -c './my_test; rocemu show --fabric'
  rocemu show --json | jq '.fabric.devices[0].qps'
)";
}

int show(const Arguments& arguments) {
  const po::variables_map values = parse_options("show", arguments, options_of_show());
  ControlClient client = choose_daemon(values, "show");
  client.require_same_version();
  const bool as_json = values["json"].as<bool>();
  if (values["misuses"].as<bool>()) {
    print_misuses(client, as_json);
    return 0;
  }
  if (values["fabric"].as<bool>()) {
    Json state = client.request("network");
    state.erase("ok");
    std::cout << (as_json ? state.dump(2) + "\n" : network_text(state));
    return 0;
  }
  Json state{{"dir", client.dir()}, {"pid", client.daemon_pid()}};
  state.update(client.request("show"));
  state.erase("ok");
  if (as_json)
    std::cout << state.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  else
    std::cout << show_text(state);
  return 0;
}

}  // namespace rocemu::command
