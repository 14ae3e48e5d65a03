#include "emulator/os/threads/stacks.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <thread>

#include "emulator/os/programs/tool_output.h"

namespace rocemu {
namespace {

/// The number of further attempts if another process traces the thread. The NIC may trace it for a
/// moment to detect whether it spins.
constexpr int kAttempts = 5;
constexpr std::chrono::milliseconds kPause{20};
constexpr const char* kFrames = "64";  // of a thread, innermost first

using Word = std::pair<std::string_view, StackTool>;
constexpr Word kWords[] = {{"eu-stack-names", StackTool::kEuStackNames},
                           {"eu-stack", StackTool::kEuStack},
                           {"gdb", StackTool::kGdb}};

const char* program_of(StackTool tool) {
  return tool == StackTool::kGdb ? "gdb" : "eu-stack";
}

std::vector<std::string> command_for(StackTool tool, pid_t process, const std::string& core) {
  const std::string pid = std::to_string(process);
  if (tool != StackTool::kGdb) {
    std::vector<std::string> words = {"eu-stack", "-n", kFrames, "-p", pid};
    if (tool == StackTool::kEuStack) words.emplace_back("--source");
    return words;
  }
  std::vector<std::string> words = {"gdb",
                                    "-nx",
                                    "--batch",
                                    "-iex",
                                    "set auto-load off",
                                    "-iex",
                                    "set debuginfod enabled off",
                                    "-p",
                                    pid,
                                    "-ex",
                                    std::string("thread apply all bt ") + kFrames};
  if (!core.empty()) words.insert(words.end(), {"-ex", "generate-core-file " + core});
  return words;
}

bool begins_thread(std::string_view line) {
  return line.starts_with("TID ") || line.starts_with("Thread ");
}

bool is_frame(std::string_view line) {
  return line.starts_with("#");
}

/// Returns whether the line is a source position, which eu-stack prints below a frame.
bool is_line_of_source(std::string_view line) {
  return line.starts_with("    ");
}

/// Returns the name f from "#1 0x0000563190b4415a f(int)" or "#1 0x0000563190b4415a in f
/// (argument=1) at p.c:3"; an empty string if the frame has no name.
std::string function_in(const std::string& line) {
  static const std::regex kFrame(R"(^#\d+\s+(?:0x[0-9a-f]+\s*)?(?:- \d+\s*)?(?:in\s+)?(.*)$)");
  std::smatch found;
  if (!std::regex_match(line, found, kFrame)) return "";
  std::string name = found[1];
  // The name ends where the parameter types of a C++ function, gdb's arguments or a symbol version
  // begin.
  constexpr std::string_view kUnnamed = "(anonymous namespace)";
  size_t end = name.find_first_of("(@");
  while (end != std::string::npos && name.compare(end, kUnnamed.size(), kUnnamed) == 0)
    end = name.find_first_of("(@", end + kUnnamed.size());
  if (end != std::string::npos && end > 0) name.resize(end);
  while (!name.empty() && name.back() == ' ') name.pop_back();
  return name;
}

bool is_of_program(const std::string& name) {
  constexpr std::string_view kOthers[] = {"_start",
                                          "__libc_start_main",
                                          "__libc_start_main_impl",
                                          "__libc_start_call_main",
                                          "clone",
                                          "__clone",
                                          "clone3",
                                          "__clone3",
                                          "??",
                                          "start_thread",
                                          "__restore_rt",
                                          "__kernel_rt_sigreturn"};
  if (name.empty() || name.starts_with("<") || name.find("rocemu") != std::string::npos)
    return false;
  return std::ranges::find(kOthers, name) == std::end(kOthers);
}

bool is_refused(const std::string& said) {
  return said.find("Operation not permitted") != std::string::npos;
}

}  // namespace

std::string_view word_for(StackTool tool) {
  return std::ranges::find(kWords, tool, &Word::second)->first;
}

std::optional<StackTool> stack_tool_called(std::string_view word) {
  const auto* const found = std::ranges::find(kWords, word, &Word::first);
  if (found == std::end(kWords)) return std::nullopt;
  return found->second;
}

bool is_installed(StackTool tool) {
  const char* const path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string file = (directory.empty() ? "." : directory) + "/" + program_of(tool);
    if (access(file.c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::optional<StackTool> find_stack_tool(StackTool preferred) {
  const StackTool other = preferred == StackTool::kGdb ? StackTool::kEuStack : StackTool::kGdb;
  for (const StackTool tool : {preferred, other})
    if (is_installed(tool)) return tool;
  return std::nullopt;
}

std::string stacks_of(StackTool tool, pid_t process, const std::string& core) {
  std::string said = output_of_tool(command_for(tool, process, core));
  for (int i = 0; i < kAttempts && is_refused(said); ++i) {
    std::this_thread::sleep_for(kPause);
    said = output_of_tool(command_for(tool, process, core));
  }
  std::istringstream lines(said);
  std::string stacks, thread;  // thread: since its first line
  bool has_frames = false;
  for (std::string line; std::getline(lines, line);) {
    if (begins_thread(line)) {
      stacks += thread;
      thread = line + "\n";
    } else if (is_frame(line)) {
      has_frames = true;
      thread += line + "\n";
      // The frames above the crash belong to our signal handler and the C library, which calls it.
      const bool is_ours = line.find("__restore_rt") != std::string::npos ||
                           line.find("__kernel_rt_sigreturn") != std::string::npos ||
                           line.find("<signal handler called>") != std::string::npos;
      if (is_ours && thread.find("rocemu_turns_on_crash") != std::string::npos)
        thread.resize(thread.find('\n') + 1);
    } else if (is_line_of_source(line) && thread.find('#') != std::string::npos) {
      thread += line + "\n";
    }
  }
  stacks += thread;
  return has_frames ? stacks : said;
}

std::vector<std::string> functions_in(std::string_view stacks) {
  std::vector<std::string> threads;
  std::istringstream lines{std::string(stacks)};
  for (std::string line; std::getline(lines, line);) {
    if (begins_thread(line)) threads.emplace_back();
    if (!is_frame(line)) continue;
    const std::string name = function_in(line);
    if (!is_of_program(name)) continue;
    if (threads.empty()) threads.emplace_back();
    threads.back() += (threads.back().empty() ? "" : " < ") + name;
  }
  std::ranges::sort(threads);
  return threads;
}

}  // namespace rocemu
