#include "testing/cpp/rocemu/explore.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "testing/cpp/control_socket.h"
#include "testing/cpp/nic_process.h"
#include "testing/cpp/spawned_program.h"

namespace rocemu::testing {
namespace {

constexpr char kExplored[] = "ROCEMU_EXPLORED";

struct Output {
  int status = 0;
  std::string text;
};

/// Runs a program. Returns its standard output and its exit status.
Output output_of(const std::vector<std::string>& words) {
  const int file = make_memory_file();
  if (file < 0) throw Error(std::string("cannot make a file in memory: ") + std::strerror(errno));
  const Spawned spawned = spawn(words, {}, -1, file, -1);
  int status = 0;
  if (spawned.pid > 0) {
    while (waitpid(spawned.pid, &status, 0) < 0 && errno == EINTR) {
    }
  }
  Output output{exit_status(status), contents_of(file)};
  close(file);
  if (spawned.error != 0) {
    throw Error("cannot start " + words[0] +
                " (ROCEMU_COMMAND sets its path): " + std::strerror(spawned.error));
  }
  return output;
}

std::string own_program() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  if (size <= 0) throw Error("/proc/self/exe does not name this program");
  return {path, static_cast<size_t>(size)};
}

}  // namespace

std::string Exploration::text() const {
  std::string text;
  for (const Finding& finding : findings)
    text += finding.verdict + " " + finding.sentence + "\n  reproduce: " + finding.reproduce + "\n";
  return text;
}

Exploration explore(const std::vector<std::string>& command, const std::string& output,
                    const std::vector<std::string>& options) {
  std::vector<std::string> words = {find_command(), "explore",  "--json",
                                    "--force",      "--output", output};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  const Output said = output_of(words);
  const Json report = Json::parse(said.text, nullptr, /*allow_exceptions=*/false);
  if (!report.is_object())
    throw Error(command.empty()
                    ? "no command is given to explore"
                    : "'" + command[0] +
                          "' cannot be explored; the reason is on standard error (status " +
                          std::to_string(said.status) + ")");
  Exploration exploration{.status = said.status, .findings = {}, .report = said.text};
  for (const Json& one : report.at("findings")) {
    exploration.findings.push_back({.number = one.at("number"),
                                    .verdict = one.at("verdict"),
                                    .sentence = one.at("sentence"),
                                    .reproduce = one.at("reproduce"),
                                    .triggers = one.at("triggers")});
  }
  return exploration;
}

Exploration explore_test(const std::string& name, const std::vector<std::string>& options) {
  std::string folder = name;
  for (char& c : folder)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  std::error_code error;
  std::filesystem::create_directories("rocemu-findings", error);
  if (error) throw Error("cannot make the folder rocemu-findings: " + error.message());
  // The environment omits settings of GoogleTest that write files, repeat the test or skip it.
  return explore(
      {"env", "-u", "GTEST_OUTPUT", "-u", "GTEST_REPEAT", "-u", "GTEST_SHUFFLE", "-u",
       "GTEST_SHARD_INDEX", "-u", "GTEST_TOTAL_SHARDS", std::string(kExplored) + "=1",
       own_program(), "--gtest_filter=" + name, "--gtest_print_time=0", "--gtest_color=no"},
      "rocemu-findings/" + folder, options);
}

bool is_explored() {
  return std::getenv(kExplored) != nullptr;
}

}  // namespace rocemu::testing
