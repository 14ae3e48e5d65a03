#include "emulator/command/determinism/cycle_counter.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "emulator/os/programs/elf_file.h"

namespace rocemu::command {
namespace {

/// MRS Xt, CNTVCT_EL0 (Arm ARM, D23.12).
[[maybe_unused]] bool has_mrs_cntvct(std::string_view code) {
  for (size_t at = 0; at + 4 <= code.size(); at += 4) {
    uint32_t instruction;
    std::memcpy(&instruction, code.data() + at, sizeof instruction);
    if ((instruction & ~uint32_t{31}) == 0xd53be040) return true;
  }
  return false;
}

}  // namespace

bool reads_cycle_counter([[maybe_unused]] const std::string& path) {
#if defined(__aarch64__)
  return std::ranges::any_of(executable_code_of(path), has_mrs_cntvct);
#else
  return false;
#endif
}

}  // namespace rocemu::command
