// `rocemu explain`: what a status, event, NAK, reason or errno means, what causes it, and the rule
// that does. It reads the tables of docs/errors.md, docs/faults.md and docs/reference/naks.md,
// which are in the program.
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "emulator/command/error.h"
#include "emulator/command/explained_pages.h"
#include "emulator/command/subcommand.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

using Cells = std::vector<std::string>;

/// The cells of a table's row, without backticks; none if the line is no row.
Cells cells_of(const std::string& line) {
  Cells cells;
  if (!line.starts_with("| ")) return cells;
  std::string cell;
  for (size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '|') {
      const size_t first = cell.find_first_not_of(' ');
      const size_t last = cell.find_last_not_of(' ');
      cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
      cell.clear();
    } else if (line[i] != '`') {
      cell += line[i];
    }
  }
  return cells;
}

struct Explanation {
  std::string name, cause, rule;
};

/// A rule stands in braces; what else a row says beside the name is the cause.
void read_page(std::string_view page, std::vector<Explanation>& all) {
  std::istringstream lines{std::string(page)};
  for (std::string line; std::getline(lines, line);) {
    const Cells cells = cells_of(line);
    if (cells.size() < 2 || cells[0].empty() || cells[0].starts_with("ibv_") ||
        cells[0].starts_with("rdma_"))
      continue;
    auto found = std::ranges::find(all, cells[0], &Explanation::name);
    if (found == all.end()) found = all.insert(all.end(), {cells[0], "", ""});
    if (cells[1].starts_with("{")) {
      found->rule = cells[1];
    } else if (cells[1] != "none") {
      found->cause = cells[1];
    }
    if (cells.size() > 2 && cells[2].starts_with("{")) found->rule = cells[2];
  }
}

std::vector<Explanation> read_explanations() {
  std::vector<Explanation> all;
  for (const std::string_view page : {kErrorsPage, kFaultsPage, kNaksPage}) read_page(page, all);
  std::erase_if(all, [](const Explanation& one) {
    return one.name == "status" || one.name == "event" || one.name == "errno" ||
           one.name == "answer" || one.name == "message" || one.name == "reason" ||
           one.name == "function" || one.name.starts_with("-") || one.name.starts_with("any of") ||
           one.name.starts_with("transition") || one.name.find(" to ") != std::string::npos;
  });
  return all;
}

/// Upper case, with one kind of separator.
std::string simplified(std::string_view name) {
  std::string text;
  for (const char c : name) {
    text +=
        c == ' ' || c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return text;
}

std::optional<Explanation> find(const std::vector<Explanation>& all, const std::string& name) {
  const std::string wanted = simplified(name);
  for (const char* prefix :
       {"", "IBV_", "IBV_WC_", "IBV_EVENT_", "RDMA_CM_EVENT_", "NAK_", "CM_", "REJ_"}) {
    for (const Explanation& one : all) {
      if (simplified(one.name) == prefix + wanted) return one;
    }
  }
  for (int number = 1; number < 134; ++number) {
    const char* errno_name = strerrorname_np(number);
    if (errno_name != nullptr && wanted == errno_name)
      return Explanation{errno_name, std::strerror(number),
                         std::string("{on: verb, verb: reg_mr, do: {errno: ") + errno_name + "}}"};
  }
  return std::nullopt;
}

po::options_description options_of_explain() {
  po::options_description options("Options");
  options.add_options()("verb", po::value<std::string>()->value_name("VERB"),
                        "the function that failed, as reg_mr or rdma_connect");
  options.add_options()("json", po::bool_switch(), "print JSON");
  options.add_options()("list", po::bool_switch(), "print the names that can be explained");
  return options;
}

}  // namespace

std::string explain_help() {
  return "usage: rocemu explain STATUS|EVENT|NAK|REASON|ERRNO [--verb VERB] [--json]\n"
         "       rocemu explain --list\n"
         "\n"
         "Says what a completion status, an event, a NAK, a reason of a REJ or an error number\n"
         "means, what causes it, and which rule causes it on purpose (see `rocemu inject`).\n"
         "\n" +
         to_text(options_of_explain()) +
         "\n"
         "Exit status: 0 explained, 1 a name that is not known, 2 wrong usage.\n"
         "\n"
         "Examples:\n"
         "  rocemu explain RETRY_EXC_ERR\n"
         "  rocemu explain RNR NAK\n"
         "  rocemu explain ENOMEM --verb reg_mr\n";
}

int explain(const Arguments& arguments) {
  po::options_description options = options_of_explain();
  options.add_options()("words", po::value<Arguments>());
  po::positional_options_description positional;
  positional.add("words", -1);
  const po::variables_map values = parse_options("explain", arguments, options, positional);
  const std::vector<Explanation> all = read_explanations();
  if (values["list"].as<bool>()) {
    for (const Explanation& one : all) std::cout << one.name << "\n";
    return 0;
  }
  if (values.count("words") == 0)
    throw UsageError("explain: what? rocemu explain RETRY_EXC_ERR; all names: explain --list");
  std::string name;
  for (const std::string& word : values["words"].as<Arguments>())
    name += (name.empty() ? "" : " ") + word;
  std::optional<Explanation> found = find(all, name);
  if (!found) {
    const std::string simple = simplified(name);
    std::vector<std::string_view> names;
    for (const Explanation& one : all) names.push_back(one.name);
    std::string_view meant;
    for (const char* prefix : {"", "IBV_WC_", "IBV_EVENT_", "RDMA_CM_EVENT_"}) {
      if (meant.empty()) meant = nearest(prefix + simple, names);
    }
    throw Failure("nothing is known of '" + name + "'" +
                  (meant.empty() ? "; rocemu explain --list has the names"
                                 : "; did you mean '" + std::string(meant) + "'?"));
  }
  if (values.count("verb") != 0) {
    if (!found->name.starts_with("E"))
      throw UsageError("explain: --verb goes with an error number, as ENOMEM");
    std::string verb = values["verb"].as<std::string>();
    if (verb.starts_with("ibv_")) verb.erase(0, 4);
    found->rule = "{on: verb, verb: " + verb + ", do: {errno: " + found->name + "}}";
  }
  if (values["json"].as<bool>()) {
    std::cout << nlohmann::ordered_json(
                     {{"name", found->name}, {"cause", found->cause}, {"rule", found->rule}})
                     .dump(2)
              << "\n";
    return 0;
  }
  std::cout << found->name << "\n";
  if (!found->cause.empty()) std::cout << "  cause  " << found->cause << "\n";
  if (!found->rule.empty()) std::cout << "  rule   " << found->rule << "\n";
  return 0;
}

}  // namespace rocemu::command
