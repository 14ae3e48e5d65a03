// `rocemu doctor`: finds the reasons why emulation would fail on this machine, and suggests
// remedies.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "emulator/command/base/color.h"
#include "emulator/command/base/error.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/daemons/control_client.h"
#include "emulator/command/doctor/device_probe.h"
#include "emulator/command/doctor/diagnosis.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

po::options_description options_of_doctor() {
  po::options_description options("Options");
  options.add_options()("json", po::bool_switch(), "print JSON");
  return options;
}

const char* name_of(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kNote:
      return "note";
    case Level::kProblem:
      return "problem";
  }
  return "";
}

Style style_of(Level level) {
  return level == Level::kOk ? Style::kGood : level == Level::kNote ? Style::kNote : Style::kBad;
}

std::string as_text(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    std::string level = name_of(finding.level);
    level.resize(9, ' ');
    text += styled(level, style_of(finding.level), STDOUT_FILENO) + finding.check + ": " +
            finding.message;
    if (!finding.remedy.empty()) text += "; remedy: " + finding.remedy;
    text += "\n";
  }
  return text;
}

Json as_json(const Findings& findings, bool fine) {
  Json checks = Json::array();
  for (const Finding& finding : findings)
    checks.push_back({{"check", finding.check},
                      {"level", name_of(finding.level)},
                      {"message", finding.message},
                      {"remedy", finding.remedy}});
  return {{"ok", fine}, {"checks", checks}};
}

}  // namespace

std::string doctor_help() {
  return R"(usage: rocemu doctor [--json] [COMMAND]

Checks whether rocemu works on this machine: starts a NIC and a program that opens a device
with the installed libibverbs. With COMMAND, also checks whether the preload library can be
loaded into it. Prints one line for each check (ok, note or problem), with a remedy.

)" + to_text(options_of_doctor()) +
         R"(
Exit status: 0 if rocemu works here, 1 if there is a problem.

Examples:
  rocemu doctor
  rocemu doctor ./my_test
)";
}

int doctor(const Arguments& arguments) {
  if (arguments == Arguments{kProbeOption}) return probe_device();
  signal(SIGXFSZ, SIG_IGN);  // a small file size limit must be reported
  // "--" may precede COMMAND, as in `rocemu run`.
  Arguments own = arguments;
  const auto separator = std::ranges::find(own, "--");
  Arguments command;
  if (separator != own.end()) command.assign(separator + 1, own.end());
  own.erase(separator, own.end());

  po::options_description hidden;
  hidden.add_options()("command", po::value<Arguments>());
  po::options_description all;
  all.add(options_of_doctor()).add(hidden);
  po::positional_options_description positional;
  positional.add("command", -1);
  const po::variables_map values = parse_options("doctor", own, all, positional);
  if (values.count("command") != 0) {
    const Arguments& words = values["command"].as<Arguments>();
    command.insert(command.begin(), words.begin(), words.end());
  }

  Findings findings = check_machine();
  const auto add = [&](const Findings& more) {
    findings.insert(findings.end(), more.begin(), more.end());
  };
  add(check_nic());
  if (!command.empty()) add(check_program(command[0]));
  const bool fine = std::ranges::none_of(
      findings, [](const Finding& finding) { return finding.level == Level::kProblem; });
  if (values["json"].as<bool>())
    std::cout << as_json(findings, fine).dump(2, ' ', false, Json::error_handler_t::replace)
              << "\n";
  else
    std::cout << as_text(findings)
              << (fine ? "No problem was found that prevents emulation.\n"
                       : "Emulation will not work until these problems are fixed.\n");
  return fine ? 0 : kExitFailure;
}

}  // namespace rocemu::command
