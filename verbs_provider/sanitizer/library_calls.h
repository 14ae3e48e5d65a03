// Functions of libibverbs and librdmacm that the provider does not see. The functions here
// intercept them.
#pragma once

namespace rocemu::sanitizer {

/// Returns the library's function of that name, which a function of ours replaces, or null if there
/// is none.
void* function_behind(const char* name);

template <class Function>
Function* behind(const char* name) {
  return reinterpret_cast<Function*>(function_behind(name));
}

/// Returns whether the program has prepared for fork(), by ibv_fork_init() or the environment
/// variables for it.
bool is_fork_protected();

}  // namespace rocemu::sanitizer
