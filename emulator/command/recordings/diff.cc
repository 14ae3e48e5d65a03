// `rocemu diff`: whether two runs were the same, and where not.
#include <iostream>

#include "emulator/command/error.h"
#include "emulator/command/recordings/compare.h"
#include "emulator/command/subcommand.h"
#include "emulator/journal/canonical.h"

namespace rocemu::command {
namespace po = boost::program_options;

bool print_comparison(const std::string& a, const std::string& b) {
  uint64_t lines = 0;
  const auto deviation = journal::compare_recordings(a, b, &lines);
  if (!deviation) {
    std::cout << lines << " events and frames, the same in both\n";
    return true;
  }
  std::cout << "the recordings part at line " << deviation->line << "; before it:\n";
  for (const std::string& line : deviation->before) std::cout << "  " << line << "\n";
  const std::string end = "(no more)";
  std::cout << a << ": " << deviation->a.value_or(end) << "\n"
            << b << ": " << deviation->b.value_or(end) << "\n";
  return false;
}

std::string diff_help() {
  return "usage: rocemu diff DIR1 DIR2\n"
         "\n"
         "Compares what two runs recorded (`rocemu run --record DIR`), event by event and frame "
         "by\n"
         "frame, in a form that does not depend on chance: PSNs count from where their queue pair\n"
         "began, objects and clients are named in the order of their creation, addresses are left\n"
         "out. Prints the first line that differs with the ten before it. Times are compared if\n"
         "both ran with --lockstep.\n"
         "\n"
         "Exit status: 0 the same, 1 a difference or a recording that cannot be read, 2 wrong "
         "usage.\n"
         "\n"
         "Example:\n"
         "  rocemu run --lockstep --record /tmp/a -- ./my_test\n"
         "  rocemu run --lockstep --record /tmp/b -- ./my_test\n"
         "  rocemu diff /tmp/a /tmp/b\n";
}

int diff(const Arguments& arguments) {
  po::options_description all;
  all.add_options()("recordings", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("recordings", -1);
  const po::variables_map values = parse_options("diff", arguments, all, positional);
  const auto given = values.count("recordings") != 0
                         ? values["recordings"].as<std::vector<std::string>>()
                         : std::vector<std::string>();
  if (given.size() != 2) throw UsageError("diff: give two recordings: rocemu diff DIR1 DIR2");
  return print_comparison(given[0], given[1]) ? 0 : kExitFailure;
}

}  // namespace rocemu::command
