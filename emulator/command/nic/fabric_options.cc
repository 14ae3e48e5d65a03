#include "emulator/command/nic/fabric_options.h"

#include <dlfcn.h>

#include <boost/any.hpp>
#include <filesystem>
#include <iostream>
#include <string_view>

#include "emulator/command/base/error.h"
#include "emulator/command/faults/scenario_library.h"
#include "emulator/options/checked_options.h"
#include "emulator/options/option_table.h"
#include "emulator/profile/profile_library.h"
#include "emulator/scenario/scenario.h"

namespace rocemu::command {
namespace po = boost::program_options;

void require_own_clock(std::string_view subcommand) {
  // Only programs of a run in lockstep have this function, since such a run preloads
  // librocemu-turns.so.
  if (dlsym(RTLD_DEFAULT, "rocemu_turns_on_crash") == nullptr) return;
  throw Failure(std::string(subcommand) +
                ": a run in lockstep cannot contain another run in lockstep; "
                "use the real clock for one of them");
}

namespace {

/// Returns the value of --device, in which a profile's path is made absolute, because the daemon
/// has another working directory.
std::string with_absolute_profile(const std::string& device) {
  constexpr std::string_view kKey = ",profile=";
  const size_t at = device.find(kKey);
  if (at == std::string::npos || !profile::is_profile_file(device.substr(at + kKey.size())))
    return device;
  return device.substr(0, at + kKey.size()) +
         std::filesystem::absolute(device.substr(at + kKey.size())).string();
}

/// Returns the value PORT=FILE with an absolute path for FILE.
std::string with_absolute_file(const std::string& captured_port) {
  const size_t at = captured_port.find('=');
  if (at == std::string::npos) return captured_port;
  return captured_port.substr(0, at + 1) +
         std::filesystem::absolute(captured_port.substr(at + 1)).string();
}

/// Returns a value of a repeatable option in the form that the daemon can use.
std::string for_daemon(const std::string& option, const std::string& value) {
  if (option == "device") return with_absolute_profile(value);
  return option == "capture-port" ? with_absolute_file(value) : value;
}

}  // namespace

std::vector<std::string> daemon_arguments(options::Command command,
                                          const po::variables_map& values) {
  using options::Command;
  const std::string subcommand = command == Command::kExplore ? "explore"
                                 : command == Command::kUp    ? "up"
                                                              : "run";
  try {
    const options::FabricOptions checked = options::check_options(values);
    if (checked.lockstep) require_own_clock(subcommand);
    for (const std::string& warning : checked.network_warnings)
      std::cerr << "rocemu: warning: " + warning + "\n";
  } catch (const options::OptionError& error) {
    throw UsageError(subcommand + ": " + error.what());
  }
  std::vector<std::string> arguments;
  for (const options::Option& option : options::option_table()) {
    const std::string name = option.name;
    if (!option.commands.contains(Command::kDaemon) || !option.commands.contains(command) ||
        values.count(name) == 0)
      continue;
    const boost::any& value = values[name].value();
    if (const auto* is_set = boost::any_cast<bool>(&value)) {
      if (*is_set) arguments.push_back("--" + name);
    } else if (const auto* text = boost::any_cast<std::string>(&value)) {
      if (option.value == options::Value::kMaybeText) {
        arguments.push_back(text->empty() ? "--" + name : "--" + name + "=" + *text);
        continue;
      }
      // The daemon has another working directory, and thus needs absolute paths.
      const bool is_relative =
          name == "record" || (name == "profile" && profile::is_profile_file(*text)) ||
          ((name == "topology" || name == "fabric") && std::filesystem::is_regular_file(*text));
      arguments.insert(
          arguments.end(),
          {"--" + name, is_relative ? std::filesystem::absolute(*text).string() : *text});
    } else {
      for (const std::string& one : boost::any_cast<std::vector<std::string>>(value)) {
        arguments.insert(arguments.end(), {"--" + name, for_daemon(name, one)});
      }
    }
  }
  return arguments;
}

std::optional<capture::CaptureFile> open_capture(const po::variables_map& values) {
  if (values.count("capture") == 0) return std::nullopt;
  const auto name = values["capture"].as<std::string>();
  capture::CaptureFile file = capture::open_capture_file(
      name, [&] { std::cerr << "rocemu: waiting for a program to read the FIFO " + name + "\n"; });
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
