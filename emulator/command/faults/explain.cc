// `rocemu explain`: prints the meaning of a status, event, NAK, reason or errno, its causes, what
// programs do about it, and a fault rule that causes it. Also explains the rules of the sanitizer.
#include <unistd.h>

#include <iostream>
#include <optional>
#include <sstream>
#include <utility>

#include "emulator/command/base/color.h"
#include "emulator/command/base/error.h"
#include "emulator/command/base/print_json.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/faults/explanations.h"
#include "emulator/scenario/rule_names.h"

namespace rocemu::command {
namespace po = boost::program_options;
namespace {

po::options_description options_of_explain() {
  po::options_description options("Options");
  options.add_options()("verb", po::value<std::string>()->value_name("VERB"),
                        "explain the error for this function only, such as reg_mr or rdma_connect");
  options.add_options()("json", po::bool_switch(), "print JSON");
  options.add_options()("list", po::bool_switch(), "print all names that can be explained");
  return options;
}

/// Prints a labeled text in lines of at most 80 columns. A rule stays on one line, so that it can
/// be copied.
void print(const std::string& label, const std::string& text) {
  if (text.empty()) return;
  constexpr size_t kIndent = 10;
  std::string line = "  " + label;
  line.resize(kIndent, ' ');
  bool is_first = true;
  const auto write = [&](const std::string& text_line) {
    std::cout << (std::exchange(is_first, false)
                      ? styled(text_line.substr(0, kIndent), Style::kLabel, STDOUT_FILENO) +
                            text_line.substr(kIndent)
                      : text_line)
              << "\n";
  };
  const bool is_rule = text.starts_with("{");
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!is_rule && line.size() > kIndent && line.size() + word.size() >= 80) {
      write(line);
      line.assign(kIndent, ' ');
    }
    if (line.size() > kIndent) line += ' ';
    line += word;
  }
  write(line);
}

/// Returns the name of the verb in rules. Throws UsageError if there is no such verb.
std::string known_verb(const std::string& given) {
  if (std::string verb = scenario::verb_named(given); !verb.empty()) return verb;
  const std::string_view meant = scenario::nearest(given, scenario::verb_names().texts());
  throw UsageError("explain: --verb: there is no verb '" + given + "'" +
                   (meant.empty() ? "; docs/faults.md lists the verbs that can fail"
                                  : "; did you mean '" + std::string(meant) + "'?"));
}

Json to_json(const Explanation& one) {
  return {{"name", one.name}, {"cause", one.cause}, {"remedy", one.remedy}, {"rule", one.rule}};
}

}  // namespace

std::string explain_help() {
  return R"(usage: rocemu explain STATUS|EVENT|NAK|REASON|ERRNO|RULE [--verb VERB] [--json]
       rocemu explain --list [--json]

Explains a completion status, an event, a NAK, a REJ reason or an error number: its meaning,
its causes, what programs do about it, and a rule that causes it (see `rocemu inject`). The
number can replace the name of a REJ reason ("REJ 28") and of an errno value (12).
docs/statuses.md lists all of them. For a RULE of `rocemu run --sanitize` it explains what is
wrong and how to correct it; docs/reference/sanitizer-rules.md has an example of each.

)" + to_text(options_of_explain()) +
         R"(
Exit status: 0 on success, 1 for an unknown name, 2 for wrong usage.

Examples:
  rocemu explain RETRY_EXC_ERR
  rocemu explain RNR NAK
  rocemu explain REJ 28
  rocemu explain 110
  rocemu explain ENOMEM --verb reg_mr
  rocemu explain mr-deregistered-in-use
)";
}

int explain(const Arguments& arguments) {
  po::options_description options = options_of_explain();
  options.add_options()("words", po::value<Arguments>());
  po::positional_options_description positional;
  positional.add("words", -1);
  const po::variables_map values = parse_options("explain", arguments, options, positional);
  const std::vector<Explanation>& all = explanations();
  if (values["list"].as<bool>()) {
    if (!values["json"].as<bool>()) {
      for (const Explanation& one : all) std::cout << one.name << "\n";
      return 0;
    }
    Json list = Json::array();
    for (const Explanation& one : all) list.push_back(to_json(one));
    print_json(list);
    return 0;
  }
  if (values.count("words") == 0)
    throw UsageError(
        "explain: no name given; for example: rocemu explain RETRY_EXC_ERR; all names: rocemu "
        "explain --list");
  std::string name;
  for (const std::string& word : values["words"].as<Arguments>())
    name += (name.empty() ? "" : " ") + word;
  std::optional<Explanation> found = find_explanation(name);
  if (!found) {
    const std::string meant = nearest_explained(name);
    throw Failure("there is no explanation of '" + name + "'" +
                  (meant.empty() ? "; rocemu explain --list has the names"
                                 : "; did you mean '" + meant + "'?"));
  }
  if (values.count("verb") != 0) {
    if (!found->name.starts_with("E"))
      throw UsageError("explain: --verb needs an error number, such as ENOMEM");
    const std::string verb = known_verb(values["verb"].as<std::string>());
    found->rule = "{on: verb, verb: " + verb + ", do: {errno: " + found->name + "}}";
  }
  if (values["json"].as<bool>()) {
    print_json(to_json(*found));
    return 0;
  }
  std::cout << styled(found->name, Style::kHeading, STDOUT_FILENO) << "\n";
  print("cause", found->cause);
  print("remedy", found->remedy);
  print("rule", found->rule);
  return 0;
}

}  // namespace rocemu::command
