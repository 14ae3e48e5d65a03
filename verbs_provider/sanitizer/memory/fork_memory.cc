#include "verbs_provider/sanitizer/memory/fork_memory.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace rocemu::sanitizer {
namespace {

void add(std::vector<MemoryRange>& ranges, const MemoryRange& range) {
  if (!ranges.empty() && ranges.back().address + ranges.back().length == range.address) {
    ranges.back().length += range.length;
  } else {
    ranges.push_back(range);
  }
}

/// Returns whether a line "VmFlags: rd wr dc" has MADV_DONTFORK (dc) or MADV_WIPEONFORK (wf).
bool has_flag_for_fork(std::string_view line) {
  return line.find(" dc") != std::string_view::npos || line.find(" wf") != std::string_view::npos;
}

}  // namespace

std::vector<MemoryRange> memory_kept_at_fork(std::string_view smaps) {
  std::vector<MemoryRange> kept;
  MemoryRange mapping{0, 0};
  bool is_shared = false;
  while (!smaps.empty()) {
    const std::string line(smaps.substr(0, smaps.find('\n')));
    smaps.remove_prefix(std::min(smaps.size(), line.size() + 1));
    unsigned long begin = 0, end = 0;
    char permissions[5] = "";
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, permissions) == 3) {
      mapping = {begin, end - begin};
      is_shared = permissions[3] == 's';
    } else if (line.starts_with("VmFlags:") && (is_shared || has_flag_for_fork(line))) {
      add(kept, mapping);
    }
  }
  return kept;
}

}  // namespace rocemu::sanitizer
