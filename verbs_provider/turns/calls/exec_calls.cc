// execve(2) and its variants: the new program starts with the real cycle counter (cycle_counter.h).
#include <cstdarg>
#include <cstddef>

#include <unistd.h>
#include <wordexp.h>

#include "verbs_provider/shim/interpose.h"
#include "verbs_provider/turns/cycle_counter.h"

namespace rocemu::turns {
namespace {

shim::Next<int(const char*, char* const*, char* const*)> next_execve("execve");
shim::Next<int(const char*, char* const*)> next_execv("execv");
shim::Next<int(const char*, char* const*)> next_execvp("execvp");
shim::Next<int(const char*, char* const*, char* const*)> next_execvpe("execvpe");
shim::Next<int(int, char* const*, char* const*)> next_fexecve("fexecve");
shim::Next<int(int, const char*, char* const*, char* const*, int)> next_execveat("execveat");
shim::Next<int(const char*, wordexp_t*, int)> next_wordexp("wordexp");

/// Returns the number of arguments before the null pointer.
size_t count_arguments(const char* first, va_list* rest) {
  size_t count = 0;
  for (const char* one = first; one != nullptr; one = va_arg(*rest, const char*)) ++count;
  return count;
}

void copy_arguments(const char* first, va_list* rest, char** to) {
  for (const char* one = first; one != nullptr; one = va_arg(*rest, const char*))
    *to++ = const_cast<char*>(one);
  *to = nullptr;
}

}  // namespace
}  // namespace rocemu::turns

using namespace rocemu::turns;

ROCEMU_REPLACE(int, execve, (const char* path, char* const* arguments, char* const* environment)) {
  const RealCycles real;
  return next_execve(path, arguments, environment);
}
ROCEMU_REPLACE(int, execv, (const char* path, char* const* arguments)) {
  const RealCycles real;
  return next_execv(path, arguments);
}
ROCEMU_REPLACE(int, execvp, (const char* file, char* const* arguments)) {
  const RealCycles real;
  return next_execvp(file, arguments);
}
ROCEMU_REPLACE(int, execvpe, (const char* file, char* const* arguments, char* const* environment)) {
  const RealCycles real;
  return next_execvpe(file, arguments, environment);
}
ROCEMU_REPLACE(int, fexecve, (int fd, char* const* arguments, char* const* environment)) {
  const RealCycles real;
  return next_fexecve(fd, arguments, environment);
}
ROCEMU_REPLACE(int, execveat,
               (int folder, const char* path, char* const* arguments, char* const* environment,
                int flags)) {
  const RealCycles real;
  return next_execveat(folder, path, arguments, environment, flags);
}

/// Stores the arguments of a variadic function, up to the terminating null pointer, in `arguments`.
#define ROCEMU_ARGUMENTS(first)                                                                \
  va_list rest;                                                                                \
  va_start(rest, first);                                                                       \
  const size_t count = count_arguments(first, &rest);                                          \
  va_end(rest);                                                                                \
  auto** const arguments = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*))); \
  va_start(rest, first);                                                                       \
  copy_arguments(first, &rest, arguments)

ROCEMU_REPLACE(int, execl, (const char* path, const char* first, ...)) {
  ROCEMU_ARGUMENTS(first);
  va_end(rest);
  return rocemu_shim_execv(path, arguments);
}
ROCEMU_REPLACE(int, execlp, (const char* file, const char* first, ...)) {
  ROCEMU_ARGUMENTS(first);
  va_end(rest);
  return rocemu_shim_execvp(file, arguments);
}
/// Passes on the environment, which follows the arguments' null pointer.
ROCEMU_REPLACE(int, execle, (const char* path, const char* first, ...)) {
  ROCEMU_ARGUMENTS(first);
  char* const* const environment = va_arg(rest, char* const*);
  va_end(rest);
  return rocemu_shim_execve(path, arguments, environment);
}

/// Runs with the real cycle counter, because wordexp(3) runs a shell for $(command).
ROCEMU_REPLACE(int, wordexp, (const char* words, wordexp_t* result, int flags)) {
  const RealCycles real;
  return next_wordexp(words, result, flags);
}
