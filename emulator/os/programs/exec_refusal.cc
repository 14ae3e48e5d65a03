#include "emulator/os/programs/exec_refusal.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <system_error>

#include "emulator/os/programs/elf_file.h"
#include "emulator/os/programs/script_file.h"

namespace rocemu {
namespace {

/// The maximum number of interpreters in a row that are scripts themselves (execve(2)).
constexpr int kMaxInterpreters = 5;

bool exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

bool is_executable_file(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

bool is_in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return is_executable_file(name);
  const char* const variable = std::getenv("PATH");
  std::istringstream path(variable != nullptr ? variable : "/bin:/usr/bin");
  for (std::string dir; std::getline(path, dir, ':');)
    if (is_executable_file((dir.empty() ? "." : dir) + "/" + name)) return true;
  return false;
}

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

ExecRefusal missing_interpreter(const std::string& path, std::string name) {
  if (name.ends_with('\r')) {
    name.pop_back();
    return {ENOENT, "the first line of " + path +
                        " ends with a carriage return, which execve(2) takes as a part of the "
                        "interpreter's name '" +
                        name + "'; convert the file to Unix line ends: sed -i 's/\\r$//' " + path};
  }
  return {ENOENT, "the interpreter " + name + " of " + path + " does not exist; install " +
                      base_name(name) + ", or correct the first line of " + path};
}

std::optional<ExecRefusal> refusal_of_script(const std::string& path, const Script& script) {
  const std::string& interpreter = script.interpreter;
  if (!exists(interpreter)) return missing_interpreter(path, interpreter);
  if (!is_executable_file(interpreter))
    return ExecRefusal{EACCES, "the interpreter " + interpreter + " of " + path +
                                   " is not an executable file; correct the first line of " + path};
  if (script.is_found_by_env && !is_in_path(script.program)) {
    if (script.program.ends_with('\r')) return missing_interpreter(path, script.program);
    return ExecRefusal{ENOENT, "the interpreter " + script.program + " of " + path + ", which " +
                                   interpreter + " looks for, is not in PATH; " + "install " +
                                   base_name(script.program) + ", or correct the first line of " +
                                   path};
  }
  return std::nullopt;
}

/// Returns the architecture's name as uname(2) prints it; empty for rare architectures.
std::string machine_of(const ElfFile& elf) {
  switch (elf.architecture >> 16) {
    case EM_386:
      return "i386";
    case EM_X86_64:
      return "x86_64";
    case EM_ARM:
      return "arm";
    case EM_AARCH64:
      return "aarch64";
    case EM_PPC64:
      return "ppc64";
    case EM_S390:
      return "s390x";
    case EM_RISCV:
      return "riscv64";
    default:
      return "";
  }
}

}  // namespace

std::optional<ExecRefusal> find_exec_refusal(const std::string& path) {
  std::string file = path;
  for (int depth = 0; depth < kMaxInterpreters; ++depth) {
    const std::optional<Script> script = read_script(file);
    if (!script) break;
    if (auto refusal = refusal_of_script(file, *script)) return refusal;
    file = script->interpreter;
  }
  if (const std::optional<ElfFile> elf = read_elf(file);
      elf && !elf->interpreter.empty() && !exists(elf->interpreter))
    return ExecRefusal{ENOENT, "the dynamic linker " + elf->interpreter + " of " + file +
                                   " does not exist; install the C library that it is built for, "
                                   "or build it for the one of this machine"};
  return std::nullopt;
}

std::string describe_exec_error(const std::string& path, int error) {
  if (const auto refusal = find_exec_refusal(path)) return refusal->why;
  const std::optional<ElfFile> own = read_elf("/proc/self/exe"), elf = read_elf(path);
  if ((error == ENOEXEC || error == ENOENT) && elf) {
    const bool is_foreign = own && own->architecture != elf->architecture;
    const std::string machine = machine_of(*elf);
    if (is_foreign)
      return "it is built for another machine" + (machine.empty() ? "" : " (" + machine + ")") +
             ", whose programs this one (" + (own ? machine_of(*own) : "") + ") cannot run";
    return "it is damaged, or not a program: " + std::generic_category().message(error);
  }
  return std::generic_category().message(error);
}

}  // namespace rocemu
