#include "emulator/command/programs/program_environment.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "emulator/abi/call_sites.h"
#include "emulator/abi/runtime_dir.h"
#include "emulator/abi/sanitizer_log.h"
#include "emulator/command/base/error.h"
#include "emulator/command/programs/installation.h"

namespace rocemu::command {
namespace {

void set_variable(const char* name, const std::string& value) {
  if (setenv(name, value.c_str(), 1) != 0) fail_with_errno("cannot set a variable", errno);
}

/// Sets options for AddressSanitizer, followed by the user's options, which take precedence. The
/// shim sets the same options (sanitizer_options.cc), except in a program that has its own default
/// options.
void allow_address_sanitizer() {
  constexpr char kVariable[] = "ASAN_OPTIONS";
  const char* const variable = std::getenv(kVariable);
  const std::string given = variable != nullptr ? variable : "";
  std::string options = "verify_asan_link_order=0";
  if (given.starts_with(options)) return;  // inside another `rocemu run`
  if (!given.empty()) options += ":" + given;
  // If rocemu's own libraries are built with AddressSanitizer, leaks are not reported, since the
  // program may be built without it.
  if (given.empty() && is_sanitized_with("address")) options += ":detect_leaks=0";
  set_variable(kVariable, options);
}

}  // namespace

void set_program_environment(const std::string& dir, const ProgramNotes& notes) {
  const char* const preload = std::getenv("LD_PRELOAD");
  const Preloaded preloaded{
      .turns = access((dir + "/" + abi::kTurnsSocket).c_str(), F_OK) == 0,
      .call_sites = !notes.call_sites.empty(),
      // Programs in another `rocemu run --sanitize` are checked by the outer run's sanitizer.
      .sanitizer = !notes.sanitizer.empty() || std::getenv(abi::kSanitizerVariable) != nullptr,
  };
  set_variable("LD_PRELOAD", preload_value(preload != nullptr ? preload : "", dir, preloaded));
  if (!notes.call_sites.empty()) set_variable(abi::kCallSitesVariable, notes.call_sites);
  if (!notes.sanitizer.empty()) set_variable(abi::kSanitizerVariable, notes.sanitizer);
  set_variable(abi::kDirVariable, dir);
  allow_address_sanitizer();
  // ThreadSanitizer does not see how uninstrumented programs and libraries synchronize, so their
  // accesses are ignored.
  if (is_sanitized_with("thread")) setenv("TSAN_OPTIONS", "ignore_noninstrumented_modules=1", 0);
}

}  // namespace rocemu::command
