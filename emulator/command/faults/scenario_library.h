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
  std::string group;        // what it is about: "packets"
};

/// Returns all scenarios, sorted by name. Throws Failure if the library is missing.
std::vector<LibraryScenario> scenario_library();

/// Returns whether a file of that name exists; it may be a pipe.
bool is_file(const std::string& word);

/// Returns the file that `--scenario` or `check` names: that file if it exists, else the scenario
/// of that name. Throws Failure, with the most similar name, if there is neither. A path is
/// returned unchanged.
std::string find_scenario(const std::string& file_or_name);

/// Prints the warnings about a scenario to standard error.
void print_warnings(const std::vector<std::string>& warnings);

/// Returns the text up to the first period that ends a sentence.
std::string first_sentence(const std::string& text);

}  // namespace rocemu::command
