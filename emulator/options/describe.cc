#include "emulator/options/describe.h"

#include <algorithm>
#include <array>
#include <boost/program_options/value_semantic.hpp>
#include <cstdint>
#include <set>
#include <sstream>
#include <vector>

#include "emulator/options/removed_options.h"

namespace rocemu::options {
namespace {

namespace po = boost::program_options;

constexpr std::array kCommands = {Command::kRun, Command::kUp, Command::kExplore, Command::kDaemon};
constexpr std::array kTasks = {Task::kServe,
                               Task::kChooseDevices,
                               Task::kCauseFaults,
                               Task::kRecordAndCompare,
                               Task::kMakeDeterministic,
                               Task::kFindHangs,
                               Task::kFindMisuse,
                               Task::kChooseFaults,
                               Task::kJudgeRuns,
                               Task::kDivideWork,
                               Task::kOther};

const char* title_of(Task task) {
  switch (task) {
    case Task::kChooseDevices:
      return "Choose devices";
    case Task::kCauseFaults:
      return "Cause faults";
    case Task::kRecordAndCompare:
      return "Record and compare";
    case Task::kMakeDeterministic:
      return "Make runs deterministic";
    case Task::kFindHangs:
      return "Diagnose hangs";
    case Task::kFindMisuse:
      return "Find wrong uses of verbs";
    case Task::kChooseFaults:
      return "Choose the faults to try";
    case Task::kJudgeRuns:
      return "Judge the runs";
    case Task::kDivideWork:
      return "Divide and resume the work";
    case Task::kServe:
      return "Start and end";
    case Task::kOther:
      return "Other options";
  }
  return "";
}

const char* name_of(Command command) {
  switch (command) {
    case Command::kRun:
      return "rocemu run";
    case Command::kUp:
      return "rocemu up";
    case Command::kExplore:
      return "rocemu explore";
    case Command::kDaemon:
      return "rocemud";
  }
  return "";
}

const po::value_semantic* semantic_of(const Option& option) {
  switch (option.value) {
    case Value::kSwitch:
      return po::bool_switch();
    case Value::kText:
    case Value::kNumber:  // the command checks it, with number_option()
      return po::value<std::string>()->value_name(option.argument);
    case Value::kMaybeText:
      return po::value<std::string>()->value_name(option.argument)->implicit_value("", "");
    case Value::kTexts:
      return po::value<std::vector<std::string>>()->value_name(option.argument);
  }
  return nullptr;
}

bool is_shown(const Option& option, bool all) {
  return option.shown == Shown::kAlways || (all && option.shown == Shown::kInHelpAll);
}

}  // namespace

po::options_description options_of(Command command) {
  po::options_description description;
  for (const Option& option : option_table()) {
    if (option.commands.contains(command))
      description.add_options()(option.name, semantic_of(option), option.help);
  }
  return description;
}

po::options_description options_in(const std::vector<std::string>& arguments, Command command) {
  po::options_description found;
  std::set<std::string_view> names;
  for (const std::string& argument : arguments) {
    if (!argument.starts_with('-')) continue;
    const std::string_view word = std::string_view(argument).substr(0, argument.find('='));
    const std::string_view name = word.substr(std::min(word.size(), size_t{2}));
    const auto row = std::ranges::find(option_table(), name, &Option::name);
    if (!word.starts_with("--") || row == option_table().end() || !row->commands.contains(command))
      return options_of(command);
    if (names.insert(row->name).second)
      found.add_options()(row->name, semantic_of(*row), row->help);
  }
  return found;
}

void add_defaults(Command command, po::variables_map& values) {
  for (const Option& option : option_table()) {
    if (option.value == Value::kSwitch && option.commands.contains(command))
      values.emplace(option.name, po::variable_value(boost::any(false), /*defaulted=*/true));
  }
}

std::string help_of(Command command, bool all) {
  po::options_description description;
  for (const Task task : kTasks) {
    po::options_description block(title_of(task));
    for (const Option& option : option_table()) {
      if (option.commands.contains(command) && option.task == task && is_shown(option, all))
        block.add_options()(option.name, semantic_of(option), option.help);
    }
    if (!block.options().empty()) description.add(block);
  }
  std::ostringstream text;
  text << description;
  const auto left_out = std::ranges::count_if(option_table(), [&](const Option& option) {
    return option.commands.contains(command) && !all && option.shown == Shown::kInHelpAll;
  });
  if (left_out > 0)
    text << "\n" << name_of(command) << " --help-all lists " << left_out << " more options.\n";
  return text.str().substr(1);  // without the empty line before the first block
}

std::optional<std::string> why_unknown(std::string_view option) {
  option = option.substr(0, option.find('='));  // --name=value
  if (auto removed = error_of_removed(option)) return removed;
  const std::string_view name = option.substr(std::min(option.size(), size_t{2}));
  const auto row = std::ranges::find(option_table(), name, &Option::name);
  if (row == option_table().end()) return std::nullopt;
  std::string owners;
  for (const Command command : kCommands) {
    if (!row->commands.contains(command)) continue;
    owners += (owners.empty() ? "" : ", ") + std::string(name_of(command));
  }
  return "option '" + std::string(option) + "' is one of " + owners;
}

}  // namespace rocemu::options
