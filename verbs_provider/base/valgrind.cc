#include "verbs_provider/base/valgrind.h"

#include <dlfcn.h>

namespace rocemu::provider {
namespace {

/// _vgnU_freeres is a function of the library that Valgrind preloads into every program, with any
/// tool.
const bool known = dlsym(RTLD_DEFAULT, "_vgnU_freeres") != nullptr;

}  // namespace

bool runs_under_valgrind() {
  return known;
}

}  // namespace rocemu::provider
