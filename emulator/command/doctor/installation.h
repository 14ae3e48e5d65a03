// Where the other parts of rocemu are, seen from this executable: beside it in a build tree and
// below the same prefix once installed.
#pragma once

#include <string>

namespace rocemu::command {

/// rocemud.
std::string daemon_path();

/// librocemu.so. Throws Failure if there is none.
std::string shim_path();

/// rocemu/librocemu-rdmavABI.so; empty if there is none.
std::string provider_path(int private_abi);

/// The directory of the scenarios that come with rocemu. It need not exist.
std::string scenario_library_dir();

/// The value of LD_PRELOAD that puts the shim (and in a sanitizer build the runtime libraries that
/// it needs) before `present`, what LD_PRELOAD holds already. `with_turns`: and before the shim the
/// library by which programs take turns on a virtual clock.
std::string preload_value(const std::string& present, bool with_turns = false);

/// Whether the shim is built with this sanitizer ("address", "thread").
bool is_sanitized_with(const char* sanitizer);

}  // namespace rocemu::command
