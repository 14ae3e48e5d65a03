// Finds the other parts of rocemu relative to this executable: in its directory in a build tree,
// and under the same prefix in an installation.
#pragma once

#include <string>

namespace rocemu::command {

/// Returns the path of rocemud.
std::string daemon_path();

/// Returns the path of librocemu.so. Throws Failure if it is missing.
std::string shim_path();

/// Returns the path of librocemu-rdmavABI.so; empty if it is missing.
std::string provider_path(int private_abi);

/// Returns the directory of the scenarios that come with rocemu. It need not exist.
std::string scenario_library_dir();

/// The libraries that are loaded into programs before the shim.
struct Preloaded {
  bool turns = false;       // the library for turns on a virtual clock
  bool call_sites = false;  // the library that records call sites (abi/call_sites.h)
  bool sanitizer = false;   // the library that checks for misuse (abi/sanitizer_log.h)
};

/// Returns the value for LD_PRELOAD. It names the preloaded libraries, including the runtime
/// libraries in a sanitizer build, before the entries of `present`, which is the current value. If
/// a library's path cannot be an entry of LD_PRELOAD, the value uses a link in the NIC's
/// `runtime_dir`.
std::string preload_value(const std::string& present, const std::string& runtime_dir,
                          Preloaded preloaded);

/// Returns whether the shim is built with the sanitizer `sanitizer`: "address" or "thread".
bool is_sanitized_with(const char* sanitizer);
/// Returns whether rocemu is built with any sanitizer.
bool is_sanitizer_build();

}  // namespace rocemu::command
