// Finds and creates the directories that emulator/abi/runtime_dir.h describes. Rejects directories
// that another user could have created.
#pragma once

#include <string>
#include <vector>

namespace rocemu::command {

/// Returns BASE, which need not exist.
std::string base_dir();

/// Returns BASE for private daemons: base_dir(), or a directory in memory if base_dir() is in /tmp.
std::string private_base_dir();

/// Returns the reason why BASE must not be used, with a remedy: it belongs to another user, is a
/// symbolic link, or is open to others. Returns an empty text if BASE can be used or does not
/// exist.
std::string distrust_of_base(const std::string& base);

/// Throws Failure if BASE must not be used.
void require_trust(const std::string& base);

/// Creates BASE if it is missing. Throws Failure if that fails or if BASE must not be used.
void create_base(const std::string& base);

/// Returns BASE/shared.
std::string shared_dir();

/// Returns a new name BASE/run-PID-RANDOM; the daemon creates the directory.
std::string new_private_dir(const std::string& base);

/// Returns the existing directories with a name like run-* in every BASE, sorted. Their daemons may
/// be dead.
std::vector<std::string> private_dirs();

/// Removes DIR if a killed daemon left it behind. Returns whether DIR existed and was removed.
bool remove_remains(const std::string& dir);

/// Removes BASE if it is empty.
void remove_empty_base(const std::string& base);

/// Returns whether the names of the sockets in DIR are short enough for a socket address.
bool fits_socket_address(const std::string& dir);

}  // namespace rocemu::command
