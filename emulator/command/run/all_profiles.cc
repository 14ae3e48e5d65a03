#include "emulator/command/run/all_profiles.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>

#include "emulator/command/base/error.h"
#include "emulator/command/run/nothing_posted.h"
#include "emulator/os/temporary_directory.h"
#include "emulator/profile/profile_library.h"

extern char** environ;

namespace rocemu::command {
namespace {

/// The options of one run: those of all, with the name of its profile for "all".
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

/// Runs it with both outputs in the file; returns the exit status, or 128 and the signal.
int run_into(const Arguments& arguments, const std::string& file) {
  std::vector<char*> pointers;
  for (const std::string& one : arguments) pointers.push_back(const_cast<char*>(one.c_str()));
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, file.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, "/proc/self/exe", &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw Failure(std::string("run: cannot start rocemu: ") + std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kExitFailure;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct Row {
  std::string profile, result, reason;
};

/// Columns, of which the last is as long as it is.
void print(const std::vector<Row>& rows) {
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.profile.size());
  constexpr size_t kResultWidth = 14;  // of NOTHING POSTED
  for (const Row& row : rows) {
    std::string line = row.profile + std::string(width + 2 - row.profile.size(), ' ') + row.result;
    if (!row.reason.empty())
      line += std::string(kResultWidth + 2 - row.result.size(), ' ') + row.reason;
    std::cout << line << "\n";
  }
}

struct Output {
  std::string reason;  // what the profile refused; else the last line
  bool nothing_posted = false;
};

Output read_output(const std::string& file) {
  Output output;
  std::ifstream lines(file);
  std::string last, refused;
  constexpr std::string_view kProfile = "profile ";
  for (std::string line; std::getline(lines, line);) {
    if (line.find(kNothingPosted) != std::string::npos) {
      output.nothing_posted = true;
      continue;
    }
    const size_t at = line.find(kProfile);
    const size_t colon = at == std::string::npos ? at : line.find(": ", at);
    const bool is_refusal = line.find("rocemu") < at && colon != std::string::npos &&
                            line.find(' ', at + kProfile.size()) > colon;
    if (is_refusal && refused.empty()) refused = line.substr(colon + 2);
    if (!line.empty()) last = line;
  }
  output.reason = refused.empty() ? last : refused;
  return output;
}

}  // namespace

int run_with_all_profiles(const Arguments& own, const Arguments& command) {
  const TemporaryDirectory directory;
  std::vector<Row> rows{{"profile", "result", ""}};
  bool failed = false;
  for (const std::string& name : profile::profile_names()) {
    Arguments arguments = arguments_for(own, name);
    arguments.emplace_back("--");
    arguments.insert(arguments.end(), command.begin(), command.end());
    const std::string file = (directory.path() / name).string();
    const int status = run_into(arguments, file);
    const Output output = read_output(file);
    if (status == kExitUsage) {
      std::ifstream text(file);
      std::cerr << text.rdbuf();
      return status;
    }
    if (status != 0 && !output.nothing_posted) {
      rows.push_back({name, "FAILED", output.reason});
    } else if (output.nothing_posted) {
      rows.push_back({name, "NOTHING POSTED",
                      output.reason.empty() ? "the program saw the device and did not use it"
                                            : output.reason});
    } else {
      rows.push_back({name, "ok", ""});
    }
    failed |= status != 0;
  }
  print(rows);
  return failed ? kExitFailure : 0;
}

}  // namespace rocemu::command
