// The scenarios that come with rocemu. Each is a file NAME.yaml that begins with a paragraph about
// it.
#pragma once

#include <string>
#include <vector>

namespace rocemu::command {

struct LibraryScenario {
  std::string name;
  std::string path;
  std::string explanation;  // the paragraph, in one line
  std::string group;        // the subject: "packets"
};

/// Returns all scenarios, sorted by name. Throws Failure if the library is missing.
std::vector<LibraryScenario> scenario_library();

/// Returns whether a file of that name exists. It may also be a pipe.
bool is_file(const std::string& word);

/// Returns the path that `--scenario` or `check` names: `file_or_name` itself if such a file
/// exists, else the path of the scenario with that name. Throws Failure, which suggests the most
/// similar name, if there is neither.
std::string find_scenario(const std::string& file_or_name);

/// Prints the warnings about a scenario to standard error.
void print_warnings(const std::vector<std::string>& warnings);

/// Returns the text up to the first period that ends a sentence.
std::string first_sentence(const std::string& text);

}  // namespace rocemu::command
