// Findings that the user does not want to hear of, as TSan's suppressions: "rule:pattern", one a
// line. The pattern is looked for in functions, files and libraries of the stacks; "*" stands for
// anything, "^" and "$" for the begin and the end.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "emulator/command/sanitizer/finding_reader.h"

namespace rocemu::command {

class Suppressions {
 public:
  /// Throws Failure, with the line number, for a file that cannot be read or a line that is not a
  /// suppression.
  static Suppressions read(const std::string& file);

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
