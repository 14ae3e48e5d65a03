#include "emulator/command/run/all_profiles.h"

#include <algorithm>
#include <deque>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/command/base/child_run.h"
#include "emulator/command/base/error.h"
#include "emulator/command/run/nothing_posted.h"
#include "emulator/os/temporary_directory.h"
#include "emulator/profile/profile_library.h"

namespace rocemu::command {
namespace {

namespace po = boost::program_options;

constexpr size_t kResultWidth = std::string_view("NOTHING POSTED").size();
/// The limits for the output that is shown of a failed run: the number of lines, and the number of
/// characters of a line and of a reason. Longer lines and reasons are cut.
constexpr size_t kLinesShown = 20, kLineShown = 240, kReasonShown = 120;

/// Rejects options that name a file or directory for one run.
void refuse_files_of_one_run(const po::variables_map& values) {
  for (const char* option : {"record", "capture", "expect", "actual", "keep-on-failure", "stacks",
                             "call-sites", "sanitize-report", "check-determinism"}) {
    if (values.count(option) != 0)
      throw UsageError("run: --profile all makes several runs; leave out --" + std::string(option) +
                       ", or give one profile");
  }
}

/// Returns the arguments for one run: `own`, in which the profile's name replaces "all".
Arguments arguments_for(const Arguments& own, const std::string& profile) {
  Arguments arguments{"rocemu", "run"};
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i] == "--profile=all") {
      arguments.push_back("--profile=" + profile);
    } else if (i > 0 && own[i - 1] == "--profile" && own[i] == "all") {
      arguments.push_back(profile);
    } else {
      arguments.push_back(own[i]);
    }
  }
  return arguments;
}

struct Output {
  std::string refusal;  // the first reason why the profile refused a verb; may be empty
  std::string last;     // the command's last line
  bool nothing_posted = false;
  std::deque<std::string> lines;  // the last lines
};

/// Returns the reason in one of rocemu's messages, which is the text after "profile NAME: "; empty
/// if the line is not such a message.
std::string refusal_in(const std::string& line, const std::string& profile) {
  const std::string begin = "profile " + profile + ": ";
  const size_t at = line.find(begin);
  return line.starts_with("rocemu") && at != std::string::npos ? line.substr(at + begin.size())
                                                               : "";
}

/// Returns the line without control characters, cut to at most `most` characters.
std::string printable(std::string_view line, size_t most) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  std::string text(line.substr(0, most));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return line.size() > most ? text + " ..." : text;
}

Output read_output(const std::string& file, const std::string& profile) {
  Output output;
  std::ifstream lines(file);
  const std::string nothing_posted = std::string("rocemu: ") + kNothingPosted;
  bool is_report = false;  // the report of a hang, which ends the output
  std::string of_rocemu;
  for (std::string line; std::getline(lines, line);) {
    output.nothing_posted |= line.starts_with(nothing_posted);
    if (output.refusal.empty()) output.refusal = refusal_in(line, profile);
    if (line.starts_with("rocemu")) {
      if (!is_report) of_rocemu = line;
      is_report |= line.starts_with("rocemu: deadlock") || line.starts_with("rocemu: --timeout");
    } else if (!line.empty() && !is_report) {
      output.last = line;
    }
    output.lines.push_back(printable(line, kLineShown));
    if (output.lines.size() > kLinesShown) output.lines.pop_front();
  }
  if (is_report || output.last.empty()) output.last = of_rocemu;
  return output;
}

struct Result {
  std::string_view word;  // the result in the table
  std::string reason;
};

Result result_of(int status, const Output& output) {
  const std::string reason =
      printable(output.refusal.empty() ? output.last : output.refusal, kReasonShown);
  if (output.nothing_posted)
    return {"NOTHING POSTED", output.refusal.empty()
                                  ? "the program listed the device and did not use it"
                                  : output.refusal};
  if (status != 0)
    return {"FAILED", reason.empty() ? "exit status " + std::to_string(status) : reason};
  return {"ok", ""};
}

void print_row(size_t width, std::string_view profile, std::string_view result,
               std::string_view reason) {
  std::string row(profile);
  row.append(width + 2 - profile.size(), ' ').append(result);
  if (!reason.empty()) row.append(kResultWidth + 2 - result.size(), ' ').append(reason);
  std::cout << row << std::endl;  // flushed, since the next run may take long
}

}  // namespace

int run_with_all_profiles(const po::variables_map& values, const Arguments& own,
                          const Arguments& command) {
  refuse_files_of_one_run(values);
  const TemporaryDirectory directory;
  const std::vector<std::string> names = profile::profile_names();
  size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  std::string failures;
  bool failed = false;
  print_row(width, "profile", "result", "");
  for (const std::string& name : names) {
    Arguments arguments = arguments_for(own, name);
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), command.begin(), command.end());
    const std::string file = (directory.path() / name).string();
    const int status = run_child(arguments, {file, file});
    const Output output = read_output(file, name);
    const Result result = result_of(status, output);
    print_row(width, name, result.word, result.reason);
    if (status == 0) continue;
    failed = true;
    failures += "\n" + name + " ended with status " + std::to_string(status) +
                (output.lines.size() < kLinesShown ? ":\n" : "; its last lines:\n");
    for (const std::string& line : output.lines) failures += "  " + line + "\n";
  }
  std::cerr << failures;
  return failed ? kExitFailure : 0;
}

}  // namespace rocemu::command
