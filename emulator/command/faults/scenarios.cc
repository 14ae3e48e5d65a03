// `rocemu scenarios`: lists and prints the scenarios that come with rocemu.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <sstream>

#include "emulator/command/base/color.h"
#include "emulator/command/base/error.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/daemons/control_client.h"
#include "emulator/command/faults/scenario_library.h"
#include "emulator/scenario/scenario.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

po::options_description options_of_scenarios() {
  po::options_description options("Options");
  options.add_options()("json", po::bool_switch(), "print names, files and explanations as JSON");
  return options;
}

void print_file(const std::string& path) {
  std::cout << scenario::read_scenario(path);
}

/// Prints the scenarios by group, in lines of at most 80 columns.
void print_list(const std::vector<LibraryScenario>& library) {
  size_t width = 0;
  std::map<std::string, std::vector<const LibraryScenario*>> groups;
  for (const LibraryScenario& one : library) {
    width = std::max(width, one.name.size());
    groups[one.group].push_back(&one);
  }
  const char* separator = "";
  for (const auto& [group, members] : groups) {
    std::cout << separator << styled(group, Style::kHeading, STDOUT_FILENO) << "\n";
    separator = "\n";
    for (const LibraryScenario* one : members) {
      std::string line = "  " + one->name;
      line.resize(width + 4, ' ');
      std::istringstream words(first_sentence(one->explanation));
      for (std::string word; words >> word;) {
        if (line.size() + 1 + word.size() > 80) {
          std::cout << line << "\n";
          line.assign(width + 4, ' ');
        }
        if (line.back() != ' ') line += ' ';
        line += word;
      }
      std::cout << line << "\n";
    }
  }
}

}  // namespace

std::string scenarios_help() {
  return R"(usage: rocemu scenarios [--json]
       rocemu scenarios NAME...

Lists the installed scenarios, or prints those with the given names: the fault, what a
program sees, why it happens in real networks, and the rules. `rocemu run`, `up` and `check`
accept such a name in place of a file.

)" + to_text(options_of_scenarios()) +
         R"(
Examples:
  rocemu scenarios
  rocemu scenarios rtu-lost
  rocemu run --scenario retry-exceeded --lockstep -- ./my_test
  rocemu scenarios port-flap >mine.yaml    # a start for a scenario of your own
)";
}

int scenarios(const Arguments& arguments) {
  po::options_description all = options_of_scenarios();
  all.add_options()("names", po::value<Arguments>());
  po::positional_options_description positional;
  positional.add("names", -1);
  const po::variables_map values = parse_options("scenarios", arguments, all, positional);
  const bool as_json = values["json"].as<bool>();
  if (values.count("names") != 0) {
    if (as_json) throw UsageError("scenarios: --json works only for the list; leave out the names");
    for (const std::string& name : values["names"].as<Arguments>()) print_file(find_scenario(name));
    return 0;
  }
  const std::vector<LibraryScenario> library = scenario_library();
  if (as_json) {
    Json list = Json::array();
    for (const LibraryScenario& one : library)
      list.push_back({{"name", one.name},
                      {"group", one.group},
                      {"file", one.path},
                      {"explanation", one.explanation}});
    std::cout << list.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return 0;
  }
  print_list(library);
  return 0;
}

}  // namespace rocemu::command
