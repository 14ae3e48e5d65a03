// `rocemu inject`: adds faults to a NIC whose programs already run.
#include <algorithm>
#include <iostream>
#include <map>

#include "emulator/command/base/error.h"
#include "emulator/command/base/print_json.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/daemons/choose_daemon.h"
#include "emulator/command/faults/rule_reports.h"
#include "emulator/command/faults/scenario_library.h"
#include "emulator/scenario/scenario.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

po::options_description options_of_inject() {
  po::options_description options("Options");
  options.add_options()(
      "list", po::bool_switch(),
      "print the rules in force, how often each one matched, and how often it acted");
  options.add_options()("clear", po::bool_switch(),
                        "remove all rules, or those with the given names");
  options.add_options()(
      "json", po::bool_switch(),
      "print JSON: with --list the rules in force, otherwise the names of the rules "
      "added or removed");
  add_dir_option(options);
  return options;
}

/// Returns whether the word is a rule, and not a file or the name of a scenario. A rule is a YAML
/// mapping, so it contains a colon or begins with a brace, which file names seldom do. A word that
/// names an existing file is a file.
bool is_rule(const std::string& word) {
  const bool is_yaml = word.find(':') != std::string::npos || word.starts_with('{');
  return is_yaml && !is_file(word);
}

/// Adds the rules' names to `words_of`, with `word` as their source. Throws Failure if a name is
/// already in `words_of`, because the later rule would replace the earlier one.
void check_names(const engine::faults::RuleSet& rules, const std::string& word,
                 std::map<std::string, std::string>& words_of) {
  for (const auto& rule : rules.rules) {
    const auto [other, is_new] = words_of.emplace(rule.name, word);
    if (!is_new)
      throw Failure(other->second + " and " + word + " both have a rule '" + rule.name +
                    "'; give it different names");
  }
}

/// Returns the arguments of the request that adds the rules of `word` to the NIC. `word` is a rule,
/// a file or the name of a scenario. Adds the rules' names to `words_of`, which maps each name to
/// its source. Throws Failure if the rules are invalid.
Json rules_of(const std::string& word, std::map<std::string, std::string>& words_of) {
  try {
    std::vector<std::string> warnings;
    if (is_rule(word)) {
      check_names(*scenario::parse_rule(word, &warnings), word, words_of);
      print_warnings(warnings);
      return {{"rule", word}};
    }
    const std::string path = find_scenario(word);
    const std::string text = scenario::read_scenario(path);
    const scenario::Scenario scenario = scenario::parse_scenario(text, path);
    check_names(*scenario.rules, word, words_of);
    print_warnings(scenario.warnings);
    return {{"scenario", text}};
  } catch (const scenario::ScenarioError& error) {
    throw Failure(error.what());
  }
}

Json names_of(const Json& rules) {
  Json names = Json::array();
  for (const Json& rule : rules) names.push_back(rule.at("name"));
  return names;
}

}  // namespace

std::string inject_help() {
  return R"(usage: rocemu inject RULE|FILE|NAME... [--json] [--dir DIR]
       rocemu inject --list [--json] [--dir DIR]
       rocemu inject --clear [NAME...] [--json] [--dir DIR]

Adds rules to a running NIC and prints their names. RULE is one rule in YAML, as in a scenario
file; FILE is a scenario file; NAME is an installed scenario (rocemu scenarios). A rule
without a name is named by its text, or by its number in its file. A rule replaces an earlier
one with the same name. If one rule is invalid, none is added. When this command returns, the
rules are in force.

)" + choice_in_words() +
         "\n" + to_text(options_of_inject()) + R"(
Examples:
  rocemu inject '{on: frame, opcode: ACK, probability: 10%, do: drop}'
  rocemu inject '{name: cut, on: link, between: [rocemu0, rocemu1], do: partition}'
  rocemu inject --clear cut
  rocemu inject rtu-lost ./mine.yaml
  rocemu inject '{on: now, device: rocemu0, do: {raise: DEVICE_FATAL}}'
)";
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
  const bool as_json = values["json"].as<bool>();
  if (list && (clear || !words.empty()))
    throw UsageError("inject: --list takes no rules: rocemu inject --list");
  const bool is_missing = words.empty() || std::ranges::any_of(words, &std::string::empty);
  if (!list && !clear && is_missing)
    throw UsageError(
        "inject: no rule given; for example: rocemu inject "
        "'{on: frame, opcode: ACK, do: drop}'");
  std::vector<Json> to_inject;
  if (!list && !clear) {
    std::map<std::string, std::string> words_of;
    for (const std::string& word : words) to_inject.push_back(rules_of(word, words_of));
  }
  ControlClient client = choose_daemon(values, "inject");
  client.require_same_version();
  if (list) {
    print_rules(client.request("rules"), as_json);
  } else if (clear) {
    Json cleared = words;
    if (words.empty()) {
      cleared = names_of(client.request("rules").at("rules"));
      client.request("clear");
    }
    for (const std::string& name : words) client.request("clear", {{"name", name}});
    if (as_json) print_json({{"cleared", cleared}});
  } else {
    Json given = Json::array();
    for (const Json& rules : to_inject) {
      const Json reply = client.request("inject", rules);
      for (const Json& name : reply.at("rules")) {
        given.push_back(name);
        if (!as_json) std::cout << name.get<std::string>() << "\n";
      }
    }
    if (as_json) print_json({{"rules", given}});
  }
  return 0;
}

}  // namespace rocemu::command
