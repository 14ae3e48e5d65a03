// Reads and applies the suppressions of findings that the user does not want to see. The format is
// that of TSan's suppressions: one "rule:pattern" per line. The pattern is searched for in the
// functions, files and libraries of the stacks. "*" matches any text, "^" the beginning and "$" the
// end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "emulator/command/sanitizer/finding_reader.h"

namespace rocemu::command {

class Suppressions {
 public:
  /// Reads the file. Throws Failure, with the line number, if it cannot be read or a line is not a
  /// suppression.
  static Suppressions read(const std::string& file);
  /// Does the same for the contents of the file with this name.
  static Suppressions parse(const std::string& contents, const std::string& file);

  bool suppress(const Misuse& finding) const;

 private:
  struct Entry {
    const sanitizer::Rule* rule;
    std::string pattern;
  };
  std::vector<Entry> entries_;
};

bool matches(std::string_view pattern, std::string_view text);

}  // namespace rocemu::command
