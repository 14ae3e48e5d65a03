#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>
#include <iostream>
#include <optional>
#include <sstream>

#include "emulator/command/base/color.h"
#include "emulator/command/base/error.h"
#include "emulator/command/base/subcommand.h"

namespace rocemu::command {
namespace {

constexpr std::array kSubcommands = {
    Subcommand{"run", "run a command that sees emulated RDMA devices", run, run_help, run_help_all},
    Subcommand{"explore", "find the faults that break a command", explore, explore_help,
               explore_help_all},
    Subcommand{"up", "start a shared NIC for several terminals", up, up_help, up_help_all},
    Subcommand{"down", "stop the shared NIC", down, down_help},
    Subcommand{"show", "print devices, queue pairs, memory regions and counters", show, show_help},
    Subcommand{"set", "take a port down or up, or remove a device", set, set_help},
    Subcommand{"wait", "wait until a program listens, or the NIC is ready", wait, wait_help},
    Subcommand{"replay", "repeat a recording without its program, and compare the outputs", replay,
               replay_help},
    Subcommand{"check", "check scenario files, profiles and networks", check, check_help},
    Subcommand{"scenarios", "list the installed scenarios", scenarios, scenarios_help},
    Subcommand{"profile", "list, show, compare and record profiles of NICs", profile, profile_help},
    Subcommand{"inject", "add faults to a running NIC", inject, inject_help},
    Subcommand{"pause", "stop a running NIC, to step through its frames", pause, pause_help},
    Subcommand{"step", "deliver the next frames, one by one", step, step_help},
    Subcommand{"resume", "continue a paused NIC", resume, resume_help},
    Subcommand{"diff", "compare two recordings", diff, diff_help},
    Subcommand{"timeline", "draw a recording or a capture", timeline, timeline_help},
    Subcommand{"fabric", "run synthetic traffic on a simulated network", fabric, fabric_help},
    Subcommand{"explain", "explain a status, event, NAK or errno, and its causes", explain,
               explain_help},
    Subcommand{"doctor", "check whether rocemu works on this machine", doctor, doctor_help},
};

const Subcommand* find_subcommand(std::string_view name) {
  const auto* found = std::ranges::find(kSubcommands, name, &Subcommand::name);
  return found == kSubcommands.end() ? nullptr : found;
}

const Subcommand& require_subcommand(const std::string& name) {
  if (const Subcommand* subcommand = find_subcommand(name)) return *subcommand;
  std::vector<std::string_view> names;
  for (const Subcommand& subcommand : kSubcommands) names.push_back(subcommand.name);
  const std::string_view meant = nearest(name, names);
  if (!meant.empty())
    throw UsageError("there is no command '" + name + "'; did you mean 'rocemu " +
                     std::string(meant) + "'?");
  throw UsageError("there is no command '" + name +
                   "'; to run a program: rocemu run -- PROGRAM; all commands: rocemu --help");
}

std::string general_help() {
  std::string text =
      "rocemu " ROCEMU_VERSION
      ": a software RDMA NIC for tests\n"
      "\n"
      "Unmodified programs that use libibverbs find RoCEv2 devices rocemu0 and rocemu1, on a\n"
      "machine without RDMA hardware, without RDMA kernel modules and without root.\n"
      "\n"
      "usage: rocemu COMMAND ...\n"
      "\n";
  for (const Subcommand& subcommand : kSubcommands) {
    std::string name(subcommand.name);
    name.resize(10, ' ');
    text += "  " + name + std::string(subcommand.summary) + "\n";
  }
  text +=
      "  help      print the help of a command: rocemu help run\n"
      "\n"
      "options: --help, --version\n"
      "\n"
      "Try:\n"
      "  rocemu run -- ibv_devices\n"
      "  rocemu run --capture trace.pcap -- ./my_test\n"
      "  rocemu run -- sh -c 'ibv_rc_pingpong -g 0 & sleep 1; ibv_rc_pingpong -g 0 127.0.0.1'\n"
      "  rocemu doctor ./my_test        when my_test does not see the devices\n"
      "\n"
      "Exit status: 0 on success, 1 on failure, 2 for wrong usage; `rocemu run` has the "
      "command's.\n";
  return text;
}

/// Wraps paragraphs at 80 columns. Leaves indented lines and lines with "usage:" unchanged.
std::string in_columns(const std::string& help) {
  constexpr size_t kColumns = 80;
  std::string text, line;
  const auto end_line = [&] {
    if (!line.empty()) text += line + "\n";
    line.clear();
  };
  std::istringstream lines(help);
  for (std::string one; std::getline(lines, one);) {
    if (one.empty() || one[0] == ' ' || one.starts_with("usage:")) {
      end_line();
      text += one + "\n";
      continue;
    }
    std::istringstream words(one);
    for (std::string word; words >> word;) {
      if (!line.empty() && line.size() + 1 + word.size() > kColumns) end_line();
      line += (line.empty() ? "" : " ") + word;
    }
  }
  end_line();
  return text;
}

/// Returns the help text if the arguments ask for it. Arguments after "--" belong to the program to
/// run.
std::optional<std::string> requested_help(const Subcommand& subcommand,
                                          const Arguments& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument == "--help" || argument == "-h") return subcommand.help();
    if (argument == "--help-all")
      return subcommand.help_all != nullptr ? subcommand.help_all() : subcommand.help();
  }
  return std::nullopt;
}

int dispatch_or_throw(const Arguments& arguments) {
  if (arguments.empty()) throw UsageError("no command given; rocemu --help lists them");
  const std::string& name = arguments[0];
  const Arguments rest(arguments.begin() + 1, arguments.end());
  if (name == "--help" || name == "-h" || (name == "help" && rest.empty())) {
    std::cout << general_help();
    return 0;
  }
  if (name == "--version") {
    std::cout << "rocemu " ROCEMU_VERSION "\n";
    return 0;
  }
  if (name == "help") {
    if (rest.size() > 1) throw UsageError("help takes one command: rocemu help run");
    std::cout << in_columns(require_subcommand(rest[0]).help());
    return 0;
  }
  if (name.starts_with("-"))
    throw UsageError("unknown option '" + name +
                     "'; options follow the command: rocemu run [options] -- PROGRAM");
  const Subcommand& subcommand = require_subcommand(name);
  if (const std::optional<std::string> help = requested_help(subcommand, rest)) {
    std::cout << in_columns(*help);
    return 0;
  }
  return subcommand.run(rest);
}

}  // namespace

std::span<const Subcommand> subcommands() {
  return kSubcommands;
}

int dispatch(const Arguments& arguments) {
  try {
    const int status = dispatch_or_throw(arguments);
    std::cout.flush();
    if (!std::cout && status == 0) throw Failure("cannot write to standard output");
    return status;
  } catch (const Error& error) {
    std::cerr << styled("rocemu: ", Style::kBad, STDERR_FILENO) << error.what() << "\n";
    return error.exit_status();
  } catch (const std::exception& error) {
    std::cerr << styled("rocemu: ", Style::kBad, STDERR_FILENO) << error.what() << "\n";
    return kExitFailure;
  }
}

}  // namespace rocemu::command
