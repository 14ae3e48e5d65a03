// `rocemu diff`: prints the first difference between two runs.
#include <unistd.h>

#include <iostream>

#include "emulator/command/base/color.h"
#include "emulator/command/base/error.h"
#include "emulator/command/base/print_json.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/recordings/compare.h"
#include "emulator/journal/canonical.h"

namespace rocemu::command {
namespace po = boost::program_options;

namespace {

po::options_description options_of_diff() {
  po::options_description options("Options");
  options.add_options()("json", po::bool_switch(), "print JSON");
  return options;
}

bool print_comparison_as_json(const std::string& a, const std::string& b) {
  uint64_t lines = 0;
  const auto deviation = journal::compare_recordings(a, b, &lines);
  const auto line_or_null = [](const std::optional<std::string>& line) {
    return line ? Json(*line) : Json();
  };
  Json json{{"recordings", {a, b}}, {"same", !deviation}};
  if (deviation) {
    json["line"] = deviation->line;
    json["before"] = deviation->before;
    json["lines"] = {line_or_null(deviation->a), line_or_null(deviation->b)};
  } else {
    json["compared"] = lines;
  }
  print_json(json);
  return !deviation;
}

}  // namespace

bool print_comparison(const std::string& a, const std::string& b) {
  uint64_t lines = 0;
  const auto deviation = journal::compare_recordings(a, b, &lines);
  if (!deviation) {
    std::cout << lines << " events and frames, the same in both\n";
    return true;
  }
  std::cout << "the recordings first differ at line " << deviation->line << "; before it:\n";
  for (const std::string& line : deviation->before) std::cout << "  " << line << "\n";
  const std::string end = "(no more)";
  const auto color = [](const std::string& text, Style style) {
    return styled(text, style, STDOUT_FILENO);
  };
  std::cout << color(a + ": " + deviation->a.value_or(end), Style::kBad) << "\n"
            << color(b + ": " + deviation->b.value_or(end), Style::kGood) << "\n";
  return false;
}

std::string diff_help() {
  return R"(usage: rocemu diff [--json] DIR1 DIR2

Compares two recordings (`rocemu run --record DIR`), event by event and frame by frame. Values
that depend on chance are normalized: PSNs are relative to the first of their queue pair,
objects and clients are numbered in order of creation, and addresses are left out. Prints the
first line that differs and the ten lines before it. Compares times only if both runs used
--lockstep.

)" + to_text(options_of_diff()) +
         R"(
Exit status: 0 if the recordings are the same, 1 if they differ or cannot be read, 2 for wrong
usage.

Example:
  rocemu run --lockstep --record /tmp/a -- ./my_test
  rocemu run --lockstep --record /tmp/b -- ./my_test
  rocemu diff /tmp/a /tmp/b
)";
}

int diff(const Arguments& arguments) {
  po::options_description all = options_of_diff();
  all.add_options()("recordings", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("recordings", -1);
  const po::variables_map values = parse_options("diff", arguments, all, positional);
  const auto given = values.count("recordings") != 0
                         ? values["recordings"].as<std::vector<std::string>>()
                         : std::vector<std::string>();
  if (given.size() != 2) throw UsageError("diff: give two recordings: rocemu diff DIR1 DIR2");
  const bool is_same = values["json"].as<bool>() ? print_comparison_as_json(given[0], given[1])
                                                 : print_comparison(given[0], given[1]);
  return is_same ? 0 : kExitFailure;
}

}  // namespace rocemu::command
