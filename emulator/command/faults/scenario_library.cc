#include "emulator/command/faults/scenario_library.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string_view>

#include "emulator/command/base/error.h"
#include "emulator/command/base/subcommand.h"
#include "emulator/command/programs/installation.h"

namespace rocemu::command {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kSuffix = ".yaml";

/// Returns the comment at the head of the file, up to the first line that is not a comment.
std::string leading_comment(const fs::path& path) {
  std::ifstream file(path);
  std::string text;
  for (std::string line; std::getline(file, line) && line.starts_with("#");) {
    const size_t begin = line.find_first_not_of("# ");
    if (begin == std::string::npos) break;
    if (!text.empty()) text += ' ';
    text.append(line, begin);
  }
  return text;
}

/// Returns the group in the file's line `group: GROUP`, such as "packets"; "others" if there is no
/// such line.
std::string group_of(const fs::path& path) {
  constexpr std::string_view kKey = "group: ";
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kKey)) return line.substr(kKey.size());
  return "others";
}

bool is_name(const std::string& word) {
  return word.find('/') == std::string::npos && !word.ends_with(kSuffix);
}

}  // namespace

bool is_file(const std::string& word) {
  std::error_code ignored;
  return fs::exists(word, ignored) && !fs::is_directory(word, ignored);
}

std::vector<LibraryScenario> scenario_library() {
  const std::string dir = scenario_library_dir();
  std::error_code error;
  std::vector<LibraryScenario> library;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, error)) {
    if (entry.path().extension() != kSuffix) continue;
    library.push_back(
        {entry.path().stem(), entry.path(), leading_comment(entry.path()), group_of(entry.path())});
  }
  if (error)
    throw Failure("cannot read the library of scenarios " + dir + ": " + error.message() +
                  "; install rocemu again");
  std::ranges::sort(library, {}, &LibraryScenario::name);
  return library;
}

std::string find_scenario(const std::string& file_or_name) {
  if (file_or_name.empty())
    throw Failure(
        "the name of the scenario is empty; give a file, or a name that `rocemu "
        "scenarios` lists");
  if (!is_name(file_or_name) || is_file(file_or_name)) return file_or_name;
  const std::vector<LibraryScenario> library = scenario_library();
  const auto found = std::ranges::find(library, file_or_name, &LibraryScenario::name);
  if (found != library.end()) return found->path;
  std::error_code ignored;
  if (fs::is_directory(file_or_name, ignored))
    throw Failure("'" + file_or_name + "' is a directory; give a file, for example one of " +
                  file_or_name + "/*.yaml");
  std::vector<std::string_view> names;
  for (const LibraryScenario& scenario : library) names.push_back(scenario.name);
  const std::string_view meant = nearest(file_or_name, names);
  throw Failure("there is no file '" + file_or_name + "' and no scenario of that name; " +
                (meant.empty() ? "rocemu scenarios lists the names"
                               : "did you mean '" + std::string(meant) + "'?"));
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) std::cerr << "rocemu: " + warning + "\n";
}

std::string first_sentence(const std::string& text) {
  const size_t end = text.find(". ");
  return end == std::string::npos ? text : text.substr(0, end + 1);
}

}  // namespace rocemu::command
