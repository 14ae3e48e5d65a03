// Finds the other parts of rocemu from this executable: beside it in a build tree, and below the
// same prefix once installed.
#pragma once

#include <string>

namespace rocemu::command {

/// rocemud.
std::string daemon_path();

/// librocemu.so. Throws Failure if there is none.
std::string shim_path();

/// librocemu-rdmavABI.so; empty if there is none.
std::string provider_path(int private_abi);

/// The directory of the scenarios that come with rocemu. It need not exist.
std::string scenario_library_dir();

/// The libraries that are loaded into programs before the shim.
struct Preloaded {
  bool turns = false;       // by which they take turns on a virtual clock
  bool call_sites = false;  // which notes where their calls come from (abi/call_sites.h)
  bool sanitizer = false;   // which judges how they use verbs (abi/sanitizer_log.h)
};

/// The value of LD_PRELOAD that puts the shim (and in a sanitizer build the runtime libraries that
/// it needs) before `present`, what LD_PRELOAD holds already. Where LD_PRELOAD cannot name them, a
/// link in the NIC's `runtime_dir` leads to them.
std::string preload_value(const std::string& present, const std::string& runtime_dir,
                          Preloaded preloaded);

/// Returns whether the shim is built with this sanitizer ("address", "thread").
bool is_sanitized_with(const char* sanitizer);
/// Returns whether rocemu is built with any sanitizer.
bool is_sanitizer_build();

}  // namespace rocemu::command
