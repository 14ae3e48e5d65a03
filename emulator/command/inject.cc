// `rocemu inject`: faults for programs that run already.
#include <iostream>

#include "emulator/command/choose_daemon.h"
#include "emulator/command/error.h"
#include "emulator/command/rule_reports.h"
#include "emulator/command/subcommand.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

po::options_description options_of_inject() {
  po::options_description options("Options");
  options.add_options()("list", po::bool_switch(),
                        "print the rules in force: how often each was asked and has acted");
  options.add_options()("clear", po::bool_switch(), "take all rules back, or the ones named");
  options.add_options()("json", po::bool_switch(), "with --list: print JSON");
  add_dir_option(options);
  return options;
}

}  // namespace

std::string inject_help() {
  return "usage: rocemu inject RULE... [--dir DIR]\n"
         "       rocemu inject --list [--json] [--dir DIR]\n"
         "       rocemu inject --clear [NAME...] [--dir DIR]\n"
         "\n"
         "Gives a running NIC further rules, each in YAML as a scenario file has them, and prints\n"
         "their names. A rule without a name has its text as name; one of the name of another\n"
         "takes its place. When this returns the rules are in force.\n"
         "\n" +
         choice_in_words() + "\n" + to_text(options_of_inject()) +
         "\n"
         "Examples:\n"
         "  rocemu inject '{on: frame, opcode: ACK, probability: 10%, do: drop}'\n"
         "  rocemu inject '{name: cut, on: link, between: [rocemu0, rocemu1], do: partition}'\n"
         "  rocemu inject --clear cut\n"
         "  rocemu inject '{on: now, device: rocemu0, do: {raise: DEVICE_FATAL}}'\n";
}

int inject(const Arguments& arguments) {
  po::options_description all = options_of_inject();
  all.add_options()("words", po::value<Arguments>());
  po::positional_options_description positional;
  positional.add("words", -1);
  const po::variables_map values = parse_options("inject", arguments, all, positional);
  const Arguments words =
      values.count("words") != 0 ? values["words"].as<Arguments>() : Arguments();
  const bool list = values["list"].as<bool>();
  const bool clear = values["clear"].as<bool>();
  if (list && (clear || !words.empty()))
    throw UsageError("inject: --list stands alone: rocemu inject --list");
  if (!list && !clear && words.empty())
    throw UsageError(
        "inject: no rule given; for example: rocemu inject "
        "'{on: frame, opcode: ACK, do: drop}'");
  ControlClient client = choose_daemon(values, "inject");
  client.require_same_version();
  if (list) {
    print_rules(client.request("rules"), values["json"].as<bool>());
  } else if (clear) {
    if (words.empty()) client.request("clear");
    for (const std::string& name : words) client.request("clear", {{"name", name}});
  } else {
    for (const std::string& rule : words) {
      const Json reply = client.request("inject", {{"rule", rule}});
      for (const Json& name : reply.at("rules")) std::cout << name.get<std::string>() << "\n";
    }
  }
  return 0;
}

}  // namespace rocemu::command
