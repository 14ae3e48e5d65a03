#include "emulator/command/fabric_options.h"

#include <dlfcn.h>

#include <boost/any.hpp>
#include <filesystem>
#include <iostream>

#include "emulator/command/error.h"
#include "emulator/command/scenario_library.h"
#include "emulator/options/checked_options.h"
#include "emulator/scenario/scenario.h"

namespace rocemu::command {
namespace po = boost::program_options;

po::options_description fabric_options() {
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  po::options_description options("Options of the fabric");
  po::options_description_easy_init add = options.add_options();
  add("devices", text("N"), "rocemu0 to rocemu(N-1), 1 to 250 of them (default 2)");
  add("device", po::value<std::vector<std::string>>()->value_name("NAME[=ADDR,...|=IF]"),
      "a device of this name and these IP addresses, or those of the network interface IF "
      "(mlx5_0=eth0), instead of the default devices; may be repeated");
  add("udp", po::bool_switch(),
      "attach the devices to UDP port 4791 of their addresses, which must be this machine's, to "
      "reach other daemons, containers and hosts");
  add("strict-icrc", po::bool_switch(),
      "with --udp, check ICRCs over IPv4 with the IP header that came, for which CAP_NET_RAW is "
      "needed; without it 16 of their 32 bits detect damage");
  add("capture", text("FILE"),
      "write every frame to FILE (pcap; Wireshark and tshark read it). FILE may be a FIFO that has "
      "a reader, or - for standard output, to be piped into tshark -r -; a slow "
      "reader misses frames, and the end of the run reports how many");
  add("snap-length", text("BYTES"),
      "keep only the first BYTES of each frame in the capture, and in the trace.pcap of --record; "
      "54 "
      "include everything up to the BTH");
  add("capture-last", text("N"),
      "keep only the last N frames in the capture; they are written when the NIC ends");
  add("clock", text("CLOCK"),
      "real (default), or virtual: time stands still while anybody has something to do and then "
      "jumps, so that a retry limit of minutes is reached at once");
  add("lockstep", po::bool_switch(),
      "a virtual clock on which all threads of all programs go on one at a time, so that a run is "
      "the same each time, to the byte, however busy the machine is");
  add("schedule", text("N"),
      "on a virtual clock, let threads go on in another order, one for each N from 1 on, when they "
      "could at the same time (default 0: in the order in which they were started)");
  add("ack-coalescing", text("N"),
      "messages that a QP posts in a row and that get one ACK, at most, 1 to 16 (default 16, and 1 "
      "on a virtual clock); 1 for a test that looks at the ACK of each message");
  add("record", text("DIR"),
      "write all that happens to the directory DIR: `rocemu replay DIR` does it again without the "
      "program, events.jsonl tells it line by line, and when it is over trace.pcap has the frames");
  add("record-limit", text("SIZE"),
      "end the recording when its journal has this size: 500k, 100M, 2G");
  add("record-policy", text("POLICY"),
      "when the disk is full or --record-limit reached: continue without recording (default), or "
      "stop the run");
  add("scenario", po::value<std::vector<std::string>>()->value_name("FILE|NAME"),
      "have the faults that FILE describes (see docs/scenarios.md), or the scenario of that name "
      "which comes with rocemu (rocemu scenarios); may be repeated");
  add("seed", text("N"),
      "the seed of everything random (default 0; with --udp another at each start)");
  add("busy-poll", po::bool_switch(),
      "the daemon never sleeps: the shortest latency where it has a processor to itself, and all "
      "of that processor; programs do the same with ROCEMU_POLL=spin in their environment");
  add("sleep-between-turns", po::bool_switch(),
      "on a virtual clock the daemon gives the processor away at once when a program has its turn, "
      "instead of waiting awake for up to 50 us: slower, and less work for a busy machine");
  add("topology", text("TOPOLOGY"),
      "what sysfs tells of the machine: pci (default), each device is a PCI function; flat, all "
      "are "
      "virtual as those of rxe; or a FILE with NUMA nodes, PCI switches and devices, or the name "
      "of "
      "one that comes with rocemu: 8-rails (docs/topology.md)");
  add("same-keys", po::bool_switch(),
      "L_Key and R_Key of a region are equal, as on most NICs, for programs that confuse them");
  add("require-grh", po::bool_switch(),
      "refuse address vectors without a GRH, as RoCE hardware does");
  add("log-level", text("LEVEL"),
      "what the daemon says: trace, debug, info, warn (default), error or off");
  return options;
}

void require_own_clock(std::string_view subcommand) {
  // Such a run preloads librocemu-turns.so.
  if (dlsym(RTLD_DEFAULT, "rocemu_turns_on_crash") == nullptr) return;
  throw Failure(
      std::string(subcommand) +
      ": a run in lockstep or on a virtual clock can have no other such run inside of it; "
      "use the real clock for one of them");
}

std::vector<std::string> daemon_arguments(std::string_view subcommand,
                                          const po::variables_map& values) {
  try {
    if (options::check_options(values).is_virtual) require_own_clock(subcommand);
  } catch (const options::OptionError& error) {
    throw UsageError(std::string(subcommand) + ": " + error.what());
  }
  // rocemud has options of the same names.
  const po::options_description description = fabric_options();
  std::vector<std::string> arguments;
  for (const auto& option : description.options()) {
    const std::string& name = option->long_name();
    if (values.count(name) == 0) continue;
    const boost::any& value = values[name].value();
    if (const auto* is_set = boost::any_cast<bool>(&value)) {
      if (*is_set) arguments.push_back("--" + name);
    } else if (const auto* text = boost::any_cast<std::string>(&value)) {
      // The daemon's working directory is another one.
      const bool is_relative =
          name == "record" || (name == "topology" && std::filesystem::is_regular_file(*text));
      arguments.insert(
          arguments.end(),
          {"--" + name, is_relative ? std::filesystem::absolute(*text).string() : *text});
    } else {
      for (const std::string& one : boost::any_cast<std::vector<std::string>>(value)) {
        arguments.insert(arguments.end(), {"--" + name, one});
      }
    }
  }
  return arguments;
}

std::optional<capture::CaptureFile> open_capture(const po::variables_map& values) {
  if (values.count("capture") == 0) return std::nullopt;
  const auto name = values["capture"].as<std::string>();
  capture::CaptureFile file = capture::open_capture_file(
      name, [&] { std::cerr << "rocemu: waiting for a reader of the FIFO " + name + "\n"; });
  if (!file.error.empty()) throw Failure(file.error);
  return file;
}

std::string read_scenarios(const po::variables_map& values) {
  if (values.count("scenario") == 0) return "";
  std::vector<std::string> files;
  for (const std::string& one : values["scenario"].as<std::vector<std::string>>())
    files.push_back(find_scenario(one));
  try {
    const scenario::Scenario scenario = scenario::load_scenarios(files);
    print_warnings(scenario.warnings);
    return scenario.rules->text;
  } catch (const scenario::ScenarioError& error) {
    throw Failure(error.what());
  }
}

}  // namespace rocemu::command
