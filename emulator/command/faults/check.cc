// `rocemu check`: checks scenario files, profiles and networks.
#include <filesystem>
#include <iostream>

#include "emulator/command/base/error.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/daemons/control_client.h"
#include "emulator/command/faults/scenario_library.h"
#include "emulator/network/file/file_plan.h"
#include "emulator/network/file/network_file.h"
#include "emulator/os/text_file.h"
#include "emulator/profile/profile_reader.h"
#include "emulator/profile/profile_text.h"
#include "emulator/scenario/scenario.h"
#include "emulator/scenario/schema.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

po::options_description options_of_check() {
  po::options_description options("Options");
  options.add_options()("json", po::bool_switch(), "print the rules as JSON");
  options.add_options()("fabric", po::value<std::string>()->value_name("FILE|NAME"),
                        "also check that this network has all links, ports, switches and hosts to "
                        "which rules with `on: network` refer");
  options.add_options()("schema", po::bool_switch(),
                        "print the JSON schema of scenario files, for editors; it is installed as "
                        "share/rocemu/scenario.schema.json");
  options.add_options()("profile-schema", po::bool_switch(),
                        "print the JSON schema of profiles; it is installed as "
                        "share/rocemu/profile.schema.json");
  return options;
}

/// Returns the text of the file; nothing if it is not a regular file. Throws TextFileError.
std::string contents_to_check(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return "";
  return read_text_file(file, {.noun = "file", .most_bytes = network::kMaxNetworkText});
}

std::vector<scenario::Problem> problems_of(const std::runtime_error& error) {
  if (const auto* wrong = dynamic_cast<const scenario::ScenarioError*>(&error))
    return wrong->problems();
  if (const auto* wrong = dynamic_cast<const profile::ProfileError*>(&error))
    return wrong->problems();
  if (const auto* wrong = dynamic_cast<const network::NetworkFileError*>(&error))
    return wrong->problems();
  return {};
}

/// Checks the file of a simulated network. Throws NetworkFileError.
void check_network(const std::string& text, const std::string& file, bool as_json, Json& json) {
  const network::NetworkFile read = network::parse_network_file(text, file);
  json["ok"] = true;
  json["warnings"] = read.warnings;
  json["network"] = {{"hosts", read.topology.hosts.size()},
                     {"switches", read.topology.switches.size()},
                     {"links", read.topology.links.size()}};
  if (as_json) return;
  print_warnings(read.warnings);
  std::cout << file << ": a network of " << read.topology.hosts.size() << " hosts, "
            << read.topology.switches.size() << " switches and " << read.topology.links.size()
            << " links\n";
}

/// Returns the network of --fabric, or null. Throws Failure if it cannot be read.
std::shared_ptr<const network::FilePlan> network_of(const po::variables_map& values) {
  if (values.count("fabric") == 0) return nullptr;
  std::vector<std::string> warnings;  // dropped, since the network is not checked here
  try {
    return network::load_plan(values["fabric"].as<std::string>(), warnings);
  } catch (const std::runtime_error& error) {
    throw Failure(std::string("--fabric: ") + error.what());
  }
}

}  // namespace

std::string check_help() {
  return R"(usage: rocemu check [--json] [--fabric FILE|NAME] FILE|NAME...
       rocemu check --schema | --profile-schema

Checks scenario files, profiles and simulated networks, as `rocemu run` does before it starts. Prints the rules of
each file, or every error with its line, its column and the values that are valid there. Warns
about rules that are valid but probably not intended.

)" + to_text(options_of_check()) +
         R"(
Exit status: 0 if all files are valid, 1 if one is not.

Examples:
  rocemu check rnr.yaml
  rocemu check --fabric star-16 flapping-link.yaml
  rocemu check --json scenarios/*.yaml | jq '.[].rules[].name'
)";
}

int check(const Arguments& arguments) {
  po::options_description all = options_of_check();
  all.add_options()("files", po::value<Arguments>());
  po::positional_options_description positional;
  positional.add("files", -1);
  const po::variables_map values = parse_options("check", arguments, all, positional);
  if (values["profile-schema"].as<bool>()) {
    std::cout << profile::schema();
    return 0;
  }
  if (values["schema"].as<bool>()) {
    std::cout << scenario::schema();
    return 0;
  }
  if (values.count("files") == 0)
    throw UsageError("check: no file given; for example: rocemu check rnr.yaml");
  const bool as_json = values["json"].as<bool>();
  const auto network = network_of(values);
  Json list = Json::array();
  int status = 0;
  for (const std::string& file : values["files"].as<Arguments>()) {
    Json json{{"file", file}};
    try {
      if (const std::string text = contents_to_check(file); profile::is_profile(text)) {
        const auto read = profile::parse_profile(text, "checked", file);
        json["ok"] = true;
        json["profile"] = read->summary;
        if (!as_json)
          std::cout << file << ": a profile" << (read->summary.empty() ? "" : ": ") << read->summary
                    << "\n";
        list.push_back(std::move(json));
        continue;
      } else if (network::is_network_file(text)) {
        check_network(text, file, as_json, json);
        list.push_back(std::move(json));
        continue;
      }
      const scenario::Scenario scenario = scenario::load_scenario(find_scenario(file));
      if (network != nullptr) scenario::check_network(*scenario.rules, network.get(), file);
      json["ok"] = true;
      json["warnings"] = scenario.warnings;
      if (!as_json) print_warnings(scenario.warnings);
      json["name"] = scenario.name;
      json["description"] = scenario.description;
      Json& rules = json["rules"] = Json::array();
      for (const auto& rule : scenario.rules->rules)
        rules.push_back({{"name", rule.name}, {"on", scenario::name_of(rule.where)}});
      if (!as_json) {
        const size_t count = scenario.rules->rules.size();
        std::cout << file << ": " << count << (count == 1 ? " rule" : " rules") << "\n";
        for (const auto& rule : scenario.rules->rules)
          std::cout << "  " << rule.name << " (on: " << scenario::name_of(rule.where) << ")\n";
      }
    } catch (const std::runtime_error&
                 error) {  // the file or name does not exist, or its contents are wrong
      status = kExitFailure;
      json["ok"] = false;
      json["error"] = error.what();
      Json& problems = json["problems"] = Json::array();
      for (const scenario::Problem& problem : problems_of(error)) {
        problems.push_back({{"line", problem.location.line},
                            {"column", problem.location.column},
                            {"message", problem.message},
                            {"warning", problem.is_warning}});
      }
      if (!as_json) std::cerr << "rocemu: " << error.what() << "\n";
    }
    list.push_back(std::move(json));
  }
  if (as_json) std::cout << list.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  return status;
}

}  // namespace rocemu::command
