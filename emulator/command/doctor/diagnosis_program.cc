#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "emulator/command/base/error.h"
#include "emulator/command/determinism/cycle_counter.h"
#include "emulator/command/doctor/diagnosis.h"
#include "emulator/command/programs/executable.h"
#include "emulator/command/programs/installation.h"
#include "emulator/command/programs/mount_sysfs.h"
#include "emulator/os/programs/elf_file.h"
#include "emulator/os/programs/script_file.h"

namespace rocemu::command {
namespace {

constexpr char kProgram[] = "program";
constexpr char kPrivileges[] = "privileges";
constexpr char kSanitizers[] = "sanitizers";
constexpr int kMaxScriptDepth = 4;  // the kernel's limit

/// Checks whether the program gains privileges. If it does, the dynamic linker ignores LD_PRELOAD.
Findings check_privileges(const std::string& path) {
  const std::string remedy = "run a copy without them: cp " + path + " /tmp; rocemu run -- /tmp/" +
                             path.substr(path.rfind('/') + 1);
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return {};
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid())
    return {{Level::kProblem, kPrivileges,
             path + " is setuid, so the dynamic linker ignores LD_PRELOAD", remedy}};
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != getegid())
    return {{Level::kProblem, kPrivileges,
             path + " is setgid, so the dynamic linker ignores LD_PRELOAD", remedy}};
  if (geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0)
    return {{Level::kProblem, kPrivileges,
             path + " has file capabilities, so the dynamic linker ignores LD_PRELOAD", remedy}};
  return {{Level::kOk, kPrivileges, path + " gains no privileges", ""}};
}

Finding check_libraries(const std::string& path, const ElfFile& elf) {
  const auto needs = [&](const char* name) {
    return std::ranges::any_of(elf.needed,
                               [&](const std::string& s) { return s.starts_with(name); });
  };
  if (needs("libibverbs.so.1") || needs("librdmacm.so.1"))
    return {Level::kOk, "libraries", path + " links libibverbs or librdmacm", ""};
  return {Level::kNote, "libraries",
          path + " does not link libibverbs or librdmacm directly; one of its libraries may", ""};
}

/// Returns the value of verify_asan_link_order in ASAN_OPTIONS. If it is set more than once, the
/// last setting counts.
std::string chosen_link_order() {
  constexpr std::string_view kOption = "verify_asan_link_order=";
  const char* const variable = std::getenv("ASAN_OPTIONS");
  const std::string options = variable != nullptr ? variable : "";
  const size_t at = options.rfind(kOption);
  if (at == std::string::npos) return "";
  const size_t begin = at + kOption.size();
  return options.substr(begin, options.find_first_of(":, \t\n", begin) - begin);
}

/// Checks a program that was built with AddressSanitizer. Its runtime library normally insists on
/// being loaded before all preloaded libraries.
Finding check_address_sanitizer(const std::string& path, bool has_library) {
  const std::string with = path + " is built with AddressSanitizer";
  if (!has_library) return {Level::kOk, kSanitizers, with + ", linked statically", ""};
  const std::string chosen = chosen_link_order();
  if (!chosen.empty() && chosen != "0" && chosen != "false" && chosen != "no")
    return {Level::kProblem, kSanitizers,
            with + ", and ASAN_OPTIONS has verify_asan_link_order=" + chosen +
                ", so its runtime library refuses to start after the shim",
            "remove verify_asan_link_order from ASAN_OPTIONS; rocemu run sets it to 0"};
  if (has_text(path, "__asan_default_options"))
    return {Level::kNote, kSanitizers,
            with +
                " and sets default options, so its runtime library starts after "
                "the shim only because rocemu run sets ASAN_OPTIONS",
            "if a script overrides ASAN_OPTIONS, add verify_asan_link_order=0"};
  return {Level::kOk, kSanitizers, with + "; its runtime library starts after the shim", ""};
}

Findings check_sanitizers(const std::string& path, const ElfFile& elf) {
  const auto needs = [&](const char* gcc, const char* clang) {
    return std::ranges::any_of(elf.needed, [&](const std::string& name) {
      return name.starts_with(gcc) || name.starts_with(clang);
    });
  };
  Findings findings;
  const bool has_library = needs("libasan.so", "libclang_rt.asan");
  if (has_library || has_text(path, "__asan_init"))
    findings.push_back(check_address_sanitizer(path, has_library));
  if (needs("libtsan.so", "libclang_rt.tsan") || has_text(path, "__tsan_init"))
    findings.push_back({Level::kNote, kSanitizers,
                        path +
                            " is built with ThreadSanitizer, which does not know that a completion "
                            "synchronizes threads; this is the same on a real NIC",
                        "suppress its reports about data whose ownership a completion transfers"});
  if (has_text(path, "__msan_init"))
    findings.push_back(
        {Level::kNote, kSanitizers,
         path + " is built with MemorySanitizer, which reports memory that uninstrumented "
                "libraries such as libibverbs and its providers have written",
         "build it with -fsanitize=address, or run it under valgrind"});
  return findings;
}

/// Returns the remedy for programs that read sysfs with direct system calls.
std::string mounts_remedy() {
  const std::string obstacle = obstacle_to_mounts();
  if (obstacle.empty()) return "rocemu run --mount-sysfs shows it the devices in /sys";
  return "rocemu run --mount-sysfs would show it the devices in /sys, but cannot here (" +
         obstacle + "); make it read $ROCEMU_DIR/sys instead of /sys, if it has an option for that";
}

Findings check_file(const std::string& path, int depth) {
  const std::optional<ElfFile> elf = read_elf(path);
  if (!elf) {
    if (access(path.c_str(), R_OK) != 0)
      return {{Level::kNote, kProgram,
               path + " can be executed but not read, so it was not examined", ""}};
    const std::optional<Script> script = read_script(path);
    const std::string interpreter = script ? script->program : "";
    if (interpreter.empty() || depth >= kMaxScriptDepth)
      return {{Level::kProblem, kProgram,
               path + " is neither an ELF program nor a script with '#!'",
               "name the program that is actually executed"}};
    Findings findings = {{Level::kOk, kProgram,
                          path + " is a script; its interpreter is checked: " + interpreter, ""}};
    try {
      const Findings more = check_file(find_executable(interpreter), depth + 1);
      findings.insert(findings.end(), more.begin(), more.end());
    } catch (const Error& error) {
      findings.push_back({Level::kProblem, kProgram, error.what(), "install the interpreter"});
    }
    return findings;
  }
  const std::optional<ElfFile> own = read_elf("/proc/self/exe");
  if (own && own->architecture != elf->architecture)
    return {{Level::kProblem, kProgram,
             path + " is of another architecture or word size than this rocemu",
             "build rocemu for that architecture"}};
  if (elf->interpreter.empty() && has_text(path, "Go buildinf:"))
    return {
        {Level::kProblem, kProgram,
         path + " is written in Go and statically linked, so neither the shim nor the provider can "
                "be loaded",
         "build it with CGO_ENABLED=1, and without -extldflags -static; if it only reads sysfs, " +
             mounts_remedy()}};
  if (elf->interpreter.empty())
    return {{Level::kProblem, kProgram,
             path + " is statically linked, so neither the shim nor the provider can be loaded",
             "link it dynamically (without -static; in Go with cgo); if it only reads sysfs, " +
                 mounts_remedy()}};
  const auto is_musl = [](const ElfFile& file) {
    return file.interpreter.find("ld-musl") != std::string::npos;
  };
  if (own && is_musl(*elf) != is_musl(*own))
    return {{Level::kProblem, kProgram,
             path + (is_musl(*elf) ? " is linked with musl, and this rocemu with glibc"
                                   : " is linked with glibc, and this rocemu with musl"),
             is_musl(*elf)
                 ? "build rocemu on a machine with musl, such as Alpine, or the program with "
                   "glibc"
                 : "use a rocemu that was built with glibc, or build the program with musl"}};
  if (own && own->interpreter != elf->interpreter)
    return {{Level::kProblem, kProgram,
             path + " uses another dynamic linker (" + elf->interpreter + ") than rocemu (" +
                 own->interpreter + ")",
             "build rocemu against the same C library"}};
  Findings findings = {{Level::kOk, kProgram, path + " is dynamically linked", ""}};
  const Findings privileges = check_privileges(path);
  findings.insert(findings.end(), privileges.begin(), privileges.end());
  findings.push_back(check_libraries(path, *elf));
  if (reads_cycle_counter(path))
    findings.push_back({Level::kNote, kProgram,
                        path + " reads the processor's cycle counter, which shows real time in "
                               "lockstep, too",
                        ""});
  if (has_text(path, "Go buildinf:"))
    findings.push_back(
        {Level::kNote, kProgram,
         path +
             " is written in Go: the shim does not see what it does without the C library, such as "
             "reading sysfs",
         mounts_remedy()});
  const Findings sanitizers = check_sanitizers(path, *elf);
  findings.insert(findings.end(), sanitizers.begin(), sanitizers.end());
  return findings;
}

}  // namespace

Findings check_program(const std::string& name) {
  try {
    return check_file(find_executable(name), 0);
  } catch (const Error& error) {
    return {{Level::kProblem, kProgram, error.what(), "check the name and PATH"}};
  }
}

}  // namespace rocemu::command
