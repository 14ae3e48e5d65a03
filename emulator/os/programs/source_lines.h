// Finds the functions and source lines at addresses of a program, from its debug information. Runs
// eu-addr2line of elfutils or addr2line of binutils.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rocemu {

struct SourceLine {
  std::string function;  // empty if unknown
  std::string file;      // the same
  uint32_t line = 0;

  bool operator==(const SourceLine&) const = default;
};

/// The source lines of each address. The innermost inlined function is the first.
using SourceLines = std::map<uint64_t, std::vector<SourceLine>>;

/// Returns the source lines of the addresses. Unknown addresses are missing in the result. The
/// result is empty if neither eu-addr2line nor addr2line is installed.
SourceLines source_lines(const std::string& file, const std::vector<uint64_t>& addresses);

/// Parses the output of eu-addr2line or addr2line with the options -a, -f and -i.
SourceLines parse_source_lines(std::string_view output);

}  // namespace rocemu
