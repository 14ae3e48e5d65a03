// The scenarios that come with rocemu, each a file NAME.yaml that begins with a paragraph about it.
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

/// All of them, by name. Throws Failure if there is no library where it should be.
std::vector<LibraryScenario> scenario_library();

/// Returns whether a file of that name exists; it may be a pipe.
bool is_file(const std::string& word);

/// The file that `--scenario` or `check` names: that file if there is one, else the scenario of
/// that name. Throws Failure, with the nearest name, if it is neither; a path stays as it is.
std::string find_scenario(const std::string& file_or_name);

/// Says on standard error what of a scenario is probably not meant.
void print_warnings(const std::vector<std::string>& warnings);

/// Up to the first full stop that ends a sentence.
std::string first_sentence(const std::string& text);

}  // namespace rocemu::command
