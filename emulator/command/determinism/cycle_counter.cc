#include "emulator/command/determinism/cycle_counter.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulator/os/programs/elf_file.h"

namespace rocemu::command {
namespace {

#if defined(__x86_64__)

/// Returns whether the code contains rdtsc or rdtscp, followed closely by a shift for the upper
/// half of the result (edx). The two or three bytes of the instruction alone would occur by chance
/// in any large program.
bool has_rdtsc(std::string_view code) {
  constexpr std::string_view kRdtsc("\x0f\x31", 2), kRdtscp("\x0f\x01\xf9", 3);
  constexpr size_t kSoon = 24;
  const auto is_shift = [](std::string_view at) {  // shl $32 of any 64-bit register
    return at.size() >= 4 && (at[0] == '\x48' || at[0] == '\x49') && at[1] == '\xc1' &&
           (static_cast<uint8_t>(at[2]) & 0xf8) == 0xe0 && at[3] == '\x20';
  };
  for (size_t at = code.find('\x0f'); at != std::string_view::npos;
       at = code.find('\x0f', at + 1)) {
    std::string_view rest = code.substr(at, kSoon);
    if (!rest.starts_with(kRdtsc) && !rest.starts_with(kRdtscp)) continue;
    for (; !rest.empty(); rest.remove_prefix(1)) {
      if (is_shift(rest)) return true;
    }
  }
  return false;
}

/// Tries, in a child process, to make reads of the cycle counter fault. Returns whether they do.
bool reads_fault() {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    prctl(PR_SET_DUMPABLE, 0);
    if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0) __builtin_ia32_rdtsc();
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status);
}

#endif

/// Returns whether the code contains MRS Xt, CNTVCT_EL0 (Arm ARM, D23.12).
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
#elif defined(__x86_64__)
  static const bool has_virtual_time = reads_fault();
  return !has_virtual_time && std::ranges::any_of(executable_code_of(path), has_rdtsc);
#else
  return false;
#endif
}

}  // namespace rocemu::command
